// Package tasklet schedules work in phases that alternate between one thread and others that may block. A [Tasklet] has
// one method, which runs one phase and returns a [Directive] that says where the next phase runs:
//
//	Sync   SYNC    on the thread in Run, one phase at a time
//	Async  ASYNC   on another thread, where it may block
//	Wait   WAIT    nowhere, until it is resumed
//	Done   DONE    there is no further phase
//
// SYNC phases use shared data without a lock. ASYNC phases make blocking calls, in parallel.
//
//	func (q *query) Task(r *tasklet.Runner) tasklet.Directive {
//		switch q.phase++; q.phase {
//		case 1: // SYNC: reads shared data
//			q.request = build(q.table)
//			return tasklet.Async
//		case 2: // ASYNC: uses only its own data
//			q.reply, q.err = call(q.request)
//			return tasklet.Sync
//		}
//		q.table.merge(q.reply, q.err) // SYNC again
//		return tasklet.Done
//	}
//
// A [Runner] schedules, suspends and runs tasklets. A [Rescheduler] resumes a suspended one. In a new program, a coroutine
// (package coro) or futures (package future) are often simpler: docs/four-ways.md compares them.
//
// # What a phase may do
//
// A SYNC phase has the thread to itself, so it should be short, and it must not block: not on a lock that an ASYNC
// phase may hold for long, not on input, and never on another phase. It may use all data of other SYNC phases of its
// runner, and everything in package act that belongs to the thread, through [Runner.Act]. Divide long work: return
// Sync, and all other ready tasklets have their turn in between.
//
// An ASYNC phase may block, and runs in parallel with other phases, but never with another phase of its own tasklet. It
// uses only data of its tasklet. The SYNC phase before it copies the shared data that it needs; the SYNC phase after it
// merges the results.
//
// Before a tasklet waits, it arranges to be resumed, by a timer, a callback or another tasklet. If the resumption comes
// before the Wait, it is kept. A tasklet that nothing resumes keeps Run from returning for ever, like a goroutine that
// waits for a channel without a sender. A shutdown with a bound in time ends it.
//
// Any code may schedule, suspend and resume tasklets, and run a phase at once with [With]. Under Run, no phase begins
// inside another: phases that a phase schedules run after it, and a chain of any length takes no stack.
//
// # Releasing resources
//
// A tasklet has no Close: it may be scheduled again, here or under another runner. Release resources of one phase in
// its deferred functions, which run after a panic and a Goexit too. Release resources that are kept from one phase to
// the next in the last phase, or in Stop during shutdown; an [act.Stopper] may end its tasklet there. Neither the last phase
// nor Stop is called after a panic in an earlier phase, after a shutdown that suspends and drops, or when the
// act.Scheduler of [RunnerOf] is closed. Put resources that must be released in all cases into an action, which is
// always closed: see [Runner.Await], and Spawn of [Runner.Act].
//
// # The states of a tasklet
//
//	Schedule, Suspend, Resume, or the Directive of a phase
//	 │
//	 ├─ Sync ──▶ queued ────── its turn ───────╮
//	 ├─ Async ─▶ handed ────── the executor ───┼─▶ in a phase ──▶ its Directive
//	 ├─ Wait ──▶ waiting ───── With ───────────╯
//	 ╰─ Done ──▶ forgotten
//
// (With takes a tasklet from wherever it is.)
//
// The last Directive counts, and a tasklet is in one place at most: Sync again moves it to the end of the queue, Wait
// and Done remove it. A resumption is not lost: it ends the present Wait, or else the next one. Only Done, and a Wait
// given to Schedule, take it back.
//
// # Tasklets and package act
//
// Under Run each member is a task of an act.Scheduler, and each SYNC phase a turn of it. So Traces, the promises on
// fairness and the bounds of a shutdown hold for tasklets, and the Cut of a Run names the members that were left. With
// [RunnerOf], tasklets run among the tasks of a server, without a Run of their own.
//
// The Executor of the act.Scheduler runs ASYNC phases; the package has no thread pool. Code
// that only waits for events is simpler as an act.Action or a coroutine. [Runner.Await] lets a tasklet wait for an
// action.
//
// # Differences from other tasklet libraries
//
// Go has no thread-local variables, so there is no current runner: it is a parameter of Task, and a goroutine without
// one uses [Inline]. Schedule returns an error, so calls cannot be chained. Under Run, a tasklet that is scheduled with
// Sync in a phase is queued and not run inside it. A resumption before the Wait is kept, phases of one tasklet never
// overlap, and a panic in an ASYNC phase is reported and blocks nothing.
package tasklet
