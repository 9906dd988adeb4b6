// Package tasklet schedules work in phases. A [Tasklet] has one method, which takes one phase and answers with
// a [Directive] where the next is to run:
//
//	Sync   SYNC    on the thread in Run, one phase at a time
//	Async  ASYNC   on another thread, where it may block
//	Wait   WAIT    nowhere, until it is resumed
//	Done   DONE    there is none
//
// So a program that computes and blocks by turns is written as phases that go to and fro: what is shared is
// touched in SYNC phases, without a lock; what blocks is done in ASYNC ones, beside each other.
//
//	func (q *query) Task(s *tasklet.Scheduler) tasklet.Directive {
//		switch q.phase++; q.phase {
//		case 1: // SYNC: looks at what is shared
//			q.request = build(q.table)
//			return tasklet.Async
//		case 2: // ASYNC: touches only what is its own
//			q.reply, q.err = call(q.request)
//			return tasklet.Sync
//		}
//		q.table.merge(q.reply, q.err) // SYNC again
//		return tasklet.Done
//	}
//
// A [Scheduler] has methods to schedule and suspend tasklets and to run them; a [Rescheduler] is the right to
// resume one; an [API] says how schedulers are made. That is all.
//
// # What a phase may do
//
// A SYNC phase has the thread to itself and keeps it as long as it likes, so it should be short, and it must
// not block: not on a lock that an ASYNC phase holds for long, not on input, and on another phase never. In
// return it may use all that other SYNC phases of its scheduler use, and everything of package act that
// belongs to the thread, through [Scheduler.Act]. What would take long is cut: answer Sync, and all others
// that are ready have their turn in between.
//
// An ASYNC phase may block, and runs beside everything else. So it touches what is its tasklet's own, which
// nobody else touches meanwhile: a tasklet is never in two phases. What it needs of the shared, the SYNC phase
// before it copies; what it has found, the SYNC phase after it merges.
//
// A tasklet that waits does nothing and has asked somebody to resume it, before it said Wait: a timer, a
// callback, another tasklet. That resumption may come before the Wait does, and is remembered. One that
// nobody resumes holds Run for ever, like a goroutine on a channel that nobody sends to; an order with a
// bound in time ends both.
//
// All may schedule, suspend and resume tasklets, their own and others, and run one on the spot with [With].
// Under Run these only note what is to be done: no phase is begun inside another, so a phase may think of
// what it says as happening after it, and a chain of any length takes no stack.
//
// # Giving back what a tasklet holds
//
// Nobody closes a tasklet: it may have another life, here or under another scheduler, and is not its scheduler's
// own. What a phase takes for itself is given back by its deferred functions, which run however it ends, by panic
// and Goexit too. What is held from one phase to the next is given back by the last one, or by Stop if an order
// comes first; a [Stopper] may end its tasklet there. Neither comes after a panic in an earlier phase, an order
// that suspends and drops, or the Close of the scheduler given to [On]. What must be given back whatever happens
// is held by an action instead, which is always closed: see [Scheduler.Await], and Spawn of [Scheduler.Act].
//
// # The states of a tasklet
//
//	Schedule, Suspend, Resume, or the answer of a phase
//	 │
//	 ├─ Sync ──▶ queued ────── its turn ───────╮
//	 ├─ Async ─▶ handed ────── the executor ───┼─▶ in a phase ──▶ its answer
//	 ├─ Wait ──▶ waiting ───── With ───────────╯
//	 ╰─ Done ──▶ forgotten
//
// (With takes a tasklet from wherever it is.)
//
// The last directive wins, and a tasklet is in one place at most: SYNC again moves it to the end of the queue,
// WAIT and DONE take it out. A resumption is not lost: it ends the Wait that is there, or else the next. Only
// DONE, and a WAIT that Schedule is given, take it back.
//
// # On top of act
//
// Under Run each member is a task of an act.Scheduler, and each SYNC phase a turn of it: in a Trace, in the
// promises on fairness, in what an order bounds. Members are told of orders, and named by the Cut of a Run
// that left them. [On] does without a Run: there tasklets live among the tasks of a server.
//
// It is neither an executor nor a pool: ASYNC phases run where API.Executor or the scheduler beneath has them
// run. And it is no shorter way to an action: what only waits for events is better an act.Action, or straight
// code in a coroutine. [Scheduler.Await] has a tasklet wait for what those wait for.
//
// # For those who know tasklets from elsewhere
//
// Go has no variables of a thread, so there is no current scheduler to ask for, to set and to put back: s is a
// parameter, and the rules for its absence fall away. A goroutine that has none uses [Inline]. Schedule returns
// an error, and so cannot be chained. Under Run, SYNC scheduled from a phase is queued and not begun inside
// it. A resumption before the Wait is remembered, phases of one tasklet never overlap, and a panic in an
// ASYNC phase is reported and hangs nobody.
package tasklet
