// Package act is the heart of Daimon: a cooperative scheduler that runs actions on one thread, one turn at a time. ACT
// stands for Asynchronous Computation Task.
//
// An [Action] is called for a turn. It does what it can do at once and returns a [Directive]: call me again, wait until I
// am woken, done. A [Scheduler] keeps each action as a [Task] and proceeds in rounds: a round gives each task that was
// ready at its start one turn. Between rounds, a pass takes in what comes from outside: posted functions, due timers,
// demons, and what the operating system reports. A [Group] is one scheduler for each CPU, each on a thread of its own.
//
// An action that wraps another one embeds a [Child]. [Seq], [All] and [First] combine actions, [Call] waits for a
// function on another goroutine, a [Local] keeps a value for each scheduler, a [Trace] observes all that happens.
//
// The package knows no sockets and no randomness. It takes the time from a [Clock] and sleeps in an [Idler], which can
// be replaced. The same input gives the same history, so a test can assert a schedule as a string, and a whole server
// can be replayed.
//
// # Which goroutine
//
// Everything belongs to the scheduler's thread, except what is marked "any goroutine": Scheduler.Post,
// Scheduler.Shutdown, RemoteWaker.Wake, AtomicWaker.Wake, and a few methods that only read. The race detector reports a
// call from another goroutine.
//
// # What holds up a scheduler
//
// While a turn lasts, all other tasks of the scheduler wait, and so do connections and timers. A turn that blocks holds up
// all of them: time.Sleep, a mutex that another goroutine holds, a channel, a sync.WaitGroup, a file, a lookup of a name, a
// call of a database or of another server. So does a long computation. Sleep with a [Timer], wait with a [Waker], give
// what blocks or takes long to [Task.Offload] or a [Call], and divide a computation into turns. A mutex that is held for a
// few instructions is fine. A mutex that a task keeps over a turn is not: another task that locks it stops the thread for
// ever.
//
// # Work on another goroutine
//
// The Group's [Executor] calls such functions, but for the last two rows.
//
//	who waits                       what
//	an action, within its turn      [Task.Offload]
//	an action, for a value          [Call]; with a context of a stage.Engine, stage.Call
//	a coroutine                     coro.Offload
//	a callback, any number of tasks future.Go
//	a process, for a message        process.Do with a Call
//	a tasklet, for its next phase   tasklet.Async
//	code that needs a net.Conn      listener.Bridge: a goroutine for each connection
//	an action, on another scheduler [On]; nobody waits for a [Scheduler.Post]
//
// # Promises
//
// Nothing is preempted, so no other task of the scheduler sees a turn half done. What becomes ready in a round waits for
// the next. With n tasks ready, turns no longer than b and passes no longer than p, a woken task starts within
// n·b + (1+n/64)·p, where p is: all demons that are ready once, at most 64 posted functions, at most 1024 due timers, the
// remote wake-ups that have come (at most one a task), and one look at the operating system. When the functions, timers and
// wake-ups of a pass are seen to have taken a millisecond, the next pass goes on, with each kind in turn. The clock is read
// after the first four of them, then ever more seldom, up to every 16th, while they are short, and after each once some have
// taken long. After at most 64 turns the scheduler takes in what comes from outside. Neither tasks nor demons can starve the
// other. The thread never sleeps while anything is runnable or due.
package act
