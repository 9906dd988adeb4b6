// Package audit lets package sim and tests look into act, monitor and coro without exported names for it. It only looks: a
// simulation that changed something would simulate another program.
package audit

var (
	// Scheduler looks at every task and queue of an *act.Scheduler, and says what does not fit.
	Scheduler func(s any) error
	// Concluded is how many orders to an *act.Scheduler have been carried out.
	Concluded func(s any) uint
	// Waits reports whether an *act.Waker would make a waiting task ready.
	Waits func(w any) bool
	// Coroutines returns how many coroutines of an *act.Scheduler have a body, and how many are kept for the next.
	Coroutines func(s any) (live, idle int)
)
