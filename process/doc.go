// Package process implements lightweight actors with bounded, typed mailboxes, on the schedulers of a Group. A process is
// an [Action] that receives messages of one type. Its turns are taken by whichever scheduler has nothing else to do, one
// turn at a time, so the state of a process needs no lock, and the work spreads over the CPUs.
//
//	sys := process.New()
//	err := act.Run(ctx, act.Config{}, sys.Setup, func(s *act.Scheduler) error {
//		if s.Index() > 0 {
//			return nil
//		}
//		counter := process.Spawn(sys, process.Handler(func(p *process.Self[int], n int) {
//			…
//		}), process.Options{})
//		return counter.Send(sys, 1)
//	})
//
// A [Self] is a process as its own turns see it; a [Ref] is its address for all others. A call that sends or spawns names
// its [Sender]: a process passes its Self, a task its *act.Task, and any other goroutine the [System].
//
// Tasks stay on the scheduler whose sockets they own. Processes own no sockets, and move between schedulers. A timer, a
// future, a function on another goroutine or any other [act.Action] reports to a process by a message: see [Self.After]
// and [Do].
//
// # Turns
//
// A process sleeps, is queued on one of the schedulers, or runs. A turn receives up to 16 messages; a process that then has
// more messages continues after all others. A scheduler runs the processes in its own queue, and takes half of another
// queue when that is empty. It polls its sockets and timers after 64 messages, or when there is nothing left to run; its
// tasks go first. If 64 messages take more than a millisecond it polls after 32, and so on, down to one. A process must
// not block or compute for long: as with a task, all others wait.
//
// If a process or another goroutine makes a process ready, a sleeping scheduler is woken at once. If a task makes it
// ready, a sleeping scheduler is woken only after the process has waited 20 µs, or at once if processes had to wait
// longer on that scheduler lately. So a few messages now and then stay on one thread.
//
// A process that sends to one that does not run hands its thread over: the receiver has the next turn there, while the
// message is in the caches. See [Ref.Send]. Such a chain ends with the poll.
//
// # Mailboxes
//
// A mailbox has room for 1024 messages, and a sender that finds it full waits: see [Options]. Messages of one sender
// arrive in the order in which they were sent; messages of several senders arrive in any order. A message is not copied:
// it belongs to the receiver, and the sender must no longer touch what it points to. Messages to processes that have
// ended are dropped and counted.
//
// A task asks a process with an [Ask], and a goroutine with [Call]. A process asks another one with an Ask that it does:
// see [Do].
//
// # Ends
//
// A process ends when its Action returns Done or Failed, by [Self.Exit] or [Self.Fail], by a panic (unless the Group's
// Config has Crash set), by [Ref.Kill], and with the processes to which it is linked: see [Link]. Each [Watch] of it sends
// one [Notice], after all that the process has sent. Its timers and other operations end with it.
//
// A child of a supervisor goes on when it has failed: the same process, with the same Ref, the same mailbox, and a new Action
// that is made after a while. See [Supervise].
//
// While any process is alive the System keeps Run from returning, since other goroutines may send to it. A System without
// processes does not; so a program that spawns from other goroutines keeps Run from returning in another way, or spawns
// the first process in a set-up function.
//
// On shutdown, processes whose Action is a [Stopper] are told, and all processes go on. From then on the System keeps
// Run from returning only while a process is ready or an operation other than a timer is under way. So Run returns when
// tasks and services have ended and all processes sleep. If the policy has Drop set, as the zero [shutdown.Policy] has,
// the processes then end as [Stopped], at the latest when its Time is over. Otherwise they continue in the next Run of
// the Group, until it is closed. A shutdown is for the whole Group. Of its bounds only Time applies to processes: their
// turns are not counted, so a process that always yields, and goroutines that go on sending, need that bound.
//
// # What it is not
//
// It is not a distributed system: a Ref means nothing in another program. Names with one owner are in
// package topic. A coroutine (package coro) lives on one thread, so it can be a task, but not a process.
//
// # Reading the source
//
// In this order: process.go (the types), core.go (the states of a process), mailbox.go, send.go (messages and hand-offs),
// room.go (waiting for room), queue.go, runner.go (the loop), idle.go, quiescence.go (when nothing is left to do),
// system.go, registry.go, stop.go (orders), end.go, observe.go (watches and links), timer.go, do.go, ask.go, supervise.go.
package process
