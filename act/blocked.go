package act

// Blocked is the error of a call that would have to wait: for input, or for room in a queue. Arm wakes t when the call
// may succeed. Call it in a turn of t, return Wait, and repeat the call in the next turn. Find it with errors.As;
// listener.Conn.Next does all of this for a connection.
//
// A task that waits for several things at once arms each of them: the first one wakes it.
type Blocked interface {
	error
	// Arm wakes t, once, when the call may succeed.
	Arm(t *Task)
}
