// Package tasklet schedules work in phases. A [Tasklet] has one method, which runs one phase and returns a
// [Directive] that says where the next phase is to run:
//
//	Sync   SYNC    on the thread in Run, one phase at a time
//	Async  ASYNC   on another thread, where it may block
//	Wait   WAIT    nowhere, until it is resumed
//	Done   DONE    there is no further phase
//
// A program that alternates between computing and blocking is written as such phases. Shared data is used in SYNC
// phases, without a lock. Blocking calls are made in ASYNC phases, in parallel.
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
// A [Runner] schedules, suspends and runs tasklets. A [Rescheduler] resumes a suspended one. A [Config] configures
// runners.
//
// # What a phase may do
//
// A SYNC phase has the thread to itself, so it should be short, and it must not block: not on a lock that an ASYNC phase
// may hold for long, not on input, and never on another phase. It may use all data of other SYNC phases of its
// runner, and everything in package act that belongs to the thread, through [Runner.Act]. Long work is divided:
// answer Sync, and all others that are ready have their turn in between.
//
// An ASYNC phase may block, and runs in parallel with other phases, but never with another phase of its own tasklet. It
// uses only data of its tasklet. The SYNC phase before it copies what it needs of shared data; the SYNC phase after it
// merges the results.
//
// Before a tasklet waits, it arranges to be resumed, by a timer, a callback or another tasklet. If the resumption comes
// before the Wait, it is kept. A tasklet that nothing resumes keeps Run from returning for ever, like a goroutine on a
// channel without a sender. An order with a bound in time ends it.
//
// Any code may schedule, suspend and resume tasklets, and run a phase at once with [With]. Under Run, no phase begins
// inside another: what a phase schedules happens after it, and a chain of any length takes no stack.
//
// # Releasing resources
//
// A tasklet has no Close: it may be scheduled again, here or under another runner. What a phase acquires for itself
// is released by its deferred functions, which run after a panic and a Goexit too. What is kept from one phase to the
// next is released by the last phase, or in Stop after an order; a [Stopper] may end its tasklet there. Neither the
// last phase nor Stop is called after a panic in an earlier phase, after an order that suspends and drops, or when the
// act.Scheduler of [RunnerOf] is closed. What must be released in all cases is put into an action, which is always
// closed: see [Runner.Await], and Spawn of [Runner.Act].
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
// The last directive counts, and a tasklet is in one place at most: Sync again moves it to the end of the queue, Wait
// and Done remove it. A resumption is not lost: it ends the present Wait, or else the next one. Only Done, and a Wait
// given to Schedule, take it back.
//
// # Tasklets and package act
//
// Under Run each member is a task of an act.Scheduler, and each SYNC phase a turn of it. So Traces, the promises on
// fairness and the bounds of orders hold for tasklets, and the Cut of a Run names the members that it has left. With
// [RunnerOf], tasklets live among the tasks of a server, without a Run of their own.
//
// ASYNC phases run where Config.Executor, or the act.Scheduler, runs them; the package has no thread pool. Code that only
// waits for events is better an act.Action, or a coroutine. [Runner.Await] lets a tasklet wait for an action.
//
// # Differences from other tasklet libraries
//
// Go has no thread-local variables, so there is no current runner: it is a parameter of Task, and a goroutine without
// one uses [Inline]. Schedule returns an error, so calls cannot be chained. Under Run, a tasklet that is scheduled Sync in
// a phase is queued and not run inside it. A resumption before the Wait is kept, phases of one tasklet never overlap, and
// a panic in an ASYNC phase is reported and blocks nothing.
package tasklet
