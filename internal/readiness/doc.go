// Package readiness is the engine that a scheduler has unless it was given another: over epoll or kqueue, which report
// when a descriptor is ready. An [Engine] is the Idler of its scheduler: the thread sleeps in the operating system's
// poller and nowhere else.
//
// A descriptor is registered once. From then on its readiness is a bit, set by events and cleared when a call finds that
// nothing is left. What a task has written and the socket would not take is sent on, and a closed connection is closed
// in stages, without a turn of the task.
//
// Package monitor has the interfaces that this engine implements. [OS] is the seam below it: the kernel, or package
// sim's simulation of one.
//
// Except where a comment says "any goroutine", everything belongs to the scheduler's thread.
package readiness
