// Package monitor provides event sources: what wakes tasks from outside their scheduler. It does not collect metrics; package
// inspect does.
//
// [Signals] shuts a program down when it gets SIGINT or SIGTERM, and [OnSignal] calls a method for other signals:
//
//	err := act.Run(ctx, act.Config{}, server.Setup, monitor.Signals(shutdown.Policy{}))
//
// [Watch] wakes a task for the events of any descriptor: a pipe, a terminal, a timerfd, inotify, a pidfd, the socket of a C
// library. With it, an event source of your own needs only a descriptor. A [Resolver] looks up the host names that are
// dialled, and a [NameCache] keeps its answers.
//
// The engine of a scheduler makes its connections, as values of type [Stream], and becomes the scheduler's Idler: the thread
// sleeps in the poller of the kernel, epoll or kqueue, and nowhere else. Programs use package listener instead: a Conn over
// a Stream, and the action Connect. A filter puts a Stream of its own under a Conn.
//
// Except where a comment says "any goroutine", everything belongs to the scheduler's thread.
package monitor
