// Package future holds values that are not there yet: a [Future] is resolved once, with a value or a
// failure, from any goroutine, and is looked at, waited for and carried on from the threads of
// schedulers.
//
//	f := future.New[int](s)               // at home on scheduler s
//	go func() { f.Resolve(ask()) }()      // any goroutine, once
//
//	if d := a.answer.Act(t); d != act.Done {  // a.answer = f.Await(): in any action, on any scheduler
//		return d
//	}
//	use(f.Value())
//
//	g := future.Map(f, half)              // on s: half is called with the value, a failure passes through
//	h := g.Within(time.Second)            // that, or a failure
//
// [Go] makes one of a function that may block, [Do] of an action or a coroutine.
//
// # Waiting
//
// [Future.Await] returns a leaf of the action tree. Any number of them may wait for one future, on its
// home scheduler and on others. It costs nobody anything while it waits, and leaves nothing behind when
// it is closed.
//
// # Callbacks
//
// A callback (of [Map], [Then], [Future.Recover], [Future.Handle]) is a task on the future's home
// scheduler, and what this house promises of tasks holds for it. It has a turn of its own, so it never
// runs inside Resolve, Fail or the call that registered it, also when the future was resolved long
// before. Those of one future run in the order of registration. A pending one holds Run; under an order
// it goes on, within the bounds; if it is cut it is named in the Cut, and the future it should have
// resolved fails with [ErrDropped], so that nobody waits for it in vain. What a callback of Map, Then or
// Recover panics with is the failure of the future that it was to resolve, as an *act.Panic.
//
// A future itself holds nothing: not Run, no thread, no goroutine. It may be resolved and read after
// its scheduler was closed; only callbacks and waiting end there.
//
// # Failures are seen
//
// A failure is seen by whoever gets it from Value, fails with it in Await, or is called back with it.
// One that nobody has seen is logged once, when the collector finds that nobody can see it any more. A
// program that ends before then does not hear of it: that is the price of not crying wolf over a future
// that somebody was going to look at later.
//
// # Between threads
//
// Nothing here blocks or takes a lock, and nothing can be refused for want of room. What is resolved
// on one thread and waited for on another travels to the other scheduler's pass, like a remote wake-up,
// at most once for each future and scheduler.
package future
