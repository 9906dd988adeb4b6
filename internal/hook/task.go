package hook

import "time"

// Task is what package inspect sees of an act.Task.
type Task struct {
	Task   any           // the *act.Task
	ID     uint32        // Place
	Action any           // the act.Action
	State  string        // ready, running, waiting, offloaded, out of turns, abandoned
	Demon  bool          // installed or attached
	Told   bool          // of the order in force
	Timers int           // armed
	Due    time.Duration // from now until the first of them
	Turns  uint64        // of all tasks that have had this place
}

var (
	// Place returns the number of t among the Tasks of its scheduler, from 1; 0 beyond the first four million. A Task that
	// is used again keeps it. It is called on the thread of the scheduler.
	Place func(t any) uint32

	// Kind returns the name of the kind of t: the service that its action belongs to, the name of a function, or a type. It
	// is called on the thread of the scheduler.
	Kind func(t any) string

	// EachTask calls visit for the tasks and demons of s in the order of their places, from the place from on, until visit
	// returns false. It returns where to go on, 0 at the end. It is called on the thread of s.
	EachTask func(s any, from uint32, visit func(Task) bool) (next uint32)

	// EachLocal calls visit for the values of all act.Locals of s. It is called on the thread of s.
	EachLocal func(s any, visit func(v any))

	// LastReady returns the last task of the ready queue, nil if none is ready. It is called on the thread of s.
	LastReady func(s any) (t any)

	// Idler returns the act.Idler of s as the strategy has wrapped it. It is called on the thread of s.
	Idler func(s any) any

	// Order returns the order to end that s obeys, nil if none; for how long; and how much time it leaves, 0 if it has no
	// such bound. It is called on the thread of s.
	Order func(s any) (order any, since, left time.Duration)

	// Counts calls add for what s has counted. It is called on the thread of s.
	Counts func(s any, add func(name string, n uint64))
)
