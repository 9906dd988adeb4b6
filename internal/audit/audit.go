// Package audit lets package sim look at what act and monitor keep to themselves, without a word of it in
// their own interfaces. It only looks: a simulation that could reach in would be of another program.
package audit

// Socket is a connection as its engine sees it.
type Socket struct {
	FD             int
	In             bool // there may be something to receive
	Reader, Writer bool // a task waits for input, for room
	Queued         int  // bytes that the system has not taken yet
	Dialing        bool // the reader waits for the connection
	ForEnd         bool // the reader waits for the end, and not for input
	Half           bool // it knows that the peer has closed its side
}

var (
	// Scheduler looks at every task and queue of an *act.Scheduler, and says what does not fit.
	Scheduler func(s any) error
	// Concluded is how many orders to an *act.Scheduler have been carried out.
	Concluded func(s any) uint
	// Waits tells whether an act.Waker would make a waiting task ready.
	Waits func(w any) bool
	// Sockets calls visit for each open connection of the engine of an *act.Scheduler, if it has one.
	Sockets func(s any, visit func(Socket))
	// Coroutines returns how many coroutines of an *act.Scheduler have a body, and how many are kept for the next.
	Coroutines func(s any) (live, idle int)
)
