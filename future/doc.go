// Package future implements futures (promises): values that become available later. A [Future] is resolved once, with a
// value or an error, on any goroutine. Tasks and callbacks on schedulers wait for it without blocking a thread, and other
// goroutines with [Future.Wait].
//
//	f := future.New[int](s)               // its home is scheduler s
//	go func() { f.Resolve(ask()) }()      // any goroutine, once
//
//	if d := a.answer.Act(t); d != act.Done {  // a.answer = f.Await(): in any action, on any scheduler
//		return d
//	}
//	use(f.Value())
//
//	g := future.Map(f, half)              // half is called on s with the value; an error passes through
//	h := g.Within(time.Second)            // the outcome of g, or a time-out
//
// [Go] runs a function that may block and returns a future of its result. [Do] runs an action or a coroutine.
//
// # Waiting
//
// [Future.Await] returns an action that waits. Any number of actions may wait for one future, on its home scheduler and
// on others. A waiting action costs no CPU time, and a closed one leaves nothing behind.
//
// # Callbacks
//
// A callback ([Map], [Future.Handle]) is a task on the future's home scheduler:
//
//   - It has a turn of its own. It never runs inside Resolve, Fail or the call that registered it, even if the
//     future was resolved long before.
//   - The callbacks of one future run in the order of registration.
//   - A pending callback keeps Run from returning. During shutdown it goes on, within the bounds of the policy. A
//     callback that is dropped is named in the shutdown.Cut, and the future that it would have resolved fails with
//     [act.ErrDropped].
//   - A panic in a callback of Map becomes the error of the future that it resolves, as an
//     *act.Panic.
//
// A future itself keeps nothing alive: no Run, no thread, no goroutine. It may be resolved and read after its scheduler
// was closed; only callbacks and waiting end there.
//
// # Unseen failures
//
// A failure is seen when Value returns it, when Await fails with it, or when a callback gets it. A failure that was
// never seen is logged once, when the garbage collector finds the future unreachable. A program that ends before that
// does not log it.
//
// # Threads
//
// Nothing here blocks, and nothing is refused for lack of room. A future has a lock, which is held for as long as it takes
// to wake the tasks that wait: each gets one event, on whatever scheduler it is.
package future
