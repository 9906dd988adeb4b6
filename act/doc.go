// Package act is the heart of Daimon: a cooperative scheduler that runs actions on one thread, one turn at a time. ACT
// stands for Asynchronous Computation Task.
//
// An [Action] is a resumable step function, much like a Rust Future that is polled. One call is a turn: the action does
// what it can do at once and returns a [Directive], such as [Yield] (call me again), [Wait] (until something wakes me) or
// [Done]. This one answers after a second:
//
//	func (a *answer) Act(t *act.Task) act.Directive {
//		if !a.armed {
//			a.armed = true
//			t.WakeAfter(&a.timer, time.Second)
//			return act.Wait
//		}
//		a.reply("Hello")
//		return act.Done
//	}
//
// A [Scheduler] runs each action as a [Task] and proceeds in rounds: a round gives one turn to each task that was ready at
// its start. Between rounds, a pass takes in what comes from outside: posted functions, due timers, demons (background
// actions), and events of the operating system. A [Group] is one scheduler for each CPU, each on a thread of its own.
//
// An action that wraps another one embeds a [Child]. [Seq], [All] and [First] combine actions, [Call] waits for a
// function on another goroutine, a [Local] keeps a value for each scheduler, and a [Trace] observes what happens.
//
// The package has no sockets and no randomness, and takes the time from a [Clock], which can be replaced. The same input
// gives the same history, so a test can assert a schedule as a string, and package sim can replay a whole server.
//
// # Which goroutine
//
// Everything belongs to the scheduler's thread, except what is marked "any goroutine": Scheduler.Post,
// Scheduler.Shutdown, AtomicWaker.Wake, and a few methods that only read. The race detector reports a call from another
// goroutine.
//
// # What holds up a scheduler
//
// While a turn lasts, all other tasks of the scheduler wait, and so do connections and timers. A turn that blocks holds up
// all of them: time.Sleep, a mutex that another goroutine holds, a channel, a sync.WaitGroup, a file, a DNS lookup, a
// call to a database or to another server. So does a long computation. Sleep with a [Timer], wait with a [Waker], give
// what blocks or takes long to [Task.Offload] or a [Call], and divide a computation into turns. A mutex that is held for a
// few instructions is fine. A mutex that a task keeps from one turn to the next is not: another task that locks it stops
// the thread for ever.
//
// # Work on another goroutine
//
// The Group's [Executor] calls such functions, except for the last two rows.
//
//	what waits                      use
//	an action, within its turn      [Task.Offload]
//	an action, for a value          [Call]; with a context of a stage.Engine, stage.NewCall
//	a coroutine                     coro.Offload
//	a callback, any number of tasks future.Go
//	an actor (package process)      process.Do with a Call
//	a tasklet, for its next phase   tasklet.Async
//	code that needs a net.Conn      listener.Bridge: a goroutine for each connection
//	an action, on another scheduler [On]; nothing waits for a [Scheduler.Post]
//
// # Promises
//
// Nothing is preempted, so no other task of the scheduler sees a turn half done. A task that becomes ready during a round
// has its turn in the next one. With n tasks ready, turns no longer than b and passes no longer than p, a woken task
// starts within n·b + (1+n/64)·p. In a pass each ready demon has one turn, at most 64 posted functions are called, at most
// 1024 due timers fire, the remote wake-ups that have come are handled (at most one a task), and the operating system is
// polled once. When the functions, timers and wake-ups of a pass have taken a millisecond, the next pass goes on, with each
// kind in turn. The clock is read after the first four of them, then less often, down to every 16th, while they are short;
// once some have taken long, it is read after each. A pass comes after at most 64 turns, so neither tasks nor demons can
// starve the other. The thread never sleeps while anything is runnable or due.
package act
