// Package monitor provides event sources: what wakes tasks from outside their scheduler. It does not collect metrics; package
// inspect does.
//
// [Signals] shuts a program down when it gets SIGINT or SIGTERM, and [OnSignal] calls a method for other signals:
//
//	err := act.Run(ctx, act.Config{}, server.Setup, monitor.Signals(shutdown.Policy{}))
//
// [Watch] wakes a task for the events of any descriptor: a pipe, a terminal, a timerfd, inotify, a pidfd, the socket of a C
// library. With it, an event source of your own needs only a descriptor. A [Resolver] looks up the host names that are
// dialled.
//
// An [Engine] makes the connections of a scheduler, as values of type [Stream]. The default engine uses epoll or kqueue
// and becomes the scheduler's Idler: the thread sleeps in the kernel's poller and nowhere else. [SetEngine] replaces it.
// Programs use package listener instead: a Conn over a Stream, and the actions Accept and Connect.
//
// Except where a comment says "any goroutine", everything belongs to the scheduler's thread.
package monitor
