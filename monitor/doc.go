// Package monitor has what wakes tasks from outside their scheduler, and the interfaces of connections.
//
// An [Engine] makes the connections of a scheduler, as values of type [Stream]. The default engine uses epoll or kqueue
// and becomes the scheduler's Idler: the thread sleeps in the operating system's poller and nowhere else. [SetEngine]
// replaces it. Package listener has what most programs use: a Conn over a Stream, and the actions Accept and Connect.
//
// [Watch] has a task woken by any other descriptor: a pipe, a terminal, a timerfd, inotify, a pidfd, the socket of a C library. So
// a monitor of your own needs nothing but a descriptor.
//
// A [Resolver] looks up the names that are dialled.
//
// [Signals] turns the signals of the process into orders, and [OnSignal] calls a method for them.
//
// Except where a comment says "any goroutine", everything belongs to the scheduler's thread.
package monitor
