// Package act is the heart of Daimon: a cooperative scheduler that runs actions on one thread, one turn
// at a time. (ACT: Asynchronous Computation Task, what a thread is where nobody is preempted.)
//
// An [Action] is called for a turn, does what it can do at once, and answers with a [Directive]: go on
// with me, wait until somebody wakes me, done. A [Scheduler] keeps actions as a [Task] each and goes
// round: a round is one go over what is ready, a pass between rounds takes in what comes from outside
// (posted functions, due timers, demons, what the operating system reports). A [Group] is one scheduler
// for each CPU, each on a thread of its own.
//
// The package is a pure machine. It knows no sockets and no randomness, and its time and its sleep come
// from a Clock and an Idler that can be replaced: the same input gives the same history, so schedules
// can be asserted as strings and whole servers replayed.
//
// # Which goroutine
//
// Everything belongs to the scheduler's thread, except what says "any goroutine": Scheduler.Post,
// Scheduler.Shutdown, Remote.Wake, and a few plain readers. Under the race detector a call from a
// foreign goroutine is reported.
//
// # Promises
//
// Nobody is preempted, so a turn is atomic for everybody else on the scheduler. What becomes ready in a
// round waits for the next. With n tasks ready, turns no longer than b and passes no longer than p, a
// woken task starts within n·b + (1+n/64)·p, where p is: all demons that are ready once, at most 64
// posted functions, at most 1024 due timers, the remote wake-ups that have come (at most one a task),
// and one look at the operating system. What happens outside is looked at after at most 64 turns.
// Neither tasks nor demons can starve the other. The thread never sleeps while anything is runnable or
// due.
package act
