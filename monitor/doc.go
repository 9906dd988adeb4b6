// Package monitor has what wakes tasks: one monitor of a kind for each scheduler, found through an
// act.Local, without a lock.
//
// [IO] is the engine under all connections. It is its scheduler's Idler: the thread sleeps in the
// operating system's poller and nowhere else. What happens on a descriptor wakes whoever has armed it;
// what a task has written and the socket would not take is sent on, and what is closed is closed in
// stages, without a turn of the task. Two seams let other worlds in: [OS] under the engine (the kernel,
// or a simulation of it) and [Stream] above it (this engine, a filter such as TLS, one day an engine of
// completions). Package listener puts a connection on a Stream; few others use IO directly.
//
// [Mailbox] takes values from any goroutine to a task. [Signals] turns the signals of the process into
// orders.
//
// Except where a comment says "any goroutine", everything belongs to the scheduler's thread.
package monitor
