package act

// Blocked is the error of a call that would have to wait: for input, for room in a queue. Arm wakes t when the call may
// succeed. It is called in a turn of t, which then returns Wait, and repeats the call in its next turn.
//
// A task that waits for several things at once arms each of them: the first one wakes it.
type Blocked interface {
	error
	Arm(t *Task)
}
