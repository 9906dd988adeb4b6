// Package process has little processes with mailboxes, any number of them, on the schedulers of a Group. A process is an
// [Action] that receives messages of one type; its turns are taken by whichever reactor has nothing else to do, one at
// a time, so what belongs to a process needs no lock, and work spreads by itself.
//
//	sys := process.New(process.Config{})
//	err := act.Run(ctx, act.Config{}, sys.Setup, func(s *act.Scheduler) error {
//		if s.Index() > 0 {
//			return nil
//		}
//		counter := process.Spawn(sys, process.Handler[int](func(p *process.Self[int], n int) {
//			…
//		}), process.Options{})
//		return counter.Send(sys, 1)
//	})
//
// A [Self] is a process as its own turns see it, a [Ref] is the same for everybody else. What sends, or spawns, says from
// where with a [Sender]: a process its Self, a task its *act.Task, and everybody else, on any goroutine, the [System].
//
// Tasks stay on the reactor whose sockets they own; processes have no sockets, and move. What they wait for by timers,
// futures, functions off the thread or any other act.Action comes to them as a message: see [Self.After], [Await],
// [Offload] and [Do].
//
// # Turns
//
// A process sleeps, is queued on one of the reactors, or runs. A turn receives up to Config.Messages messages; who has
// more then goes behind all others. A reactor runs the processes in its own queue, takes half of another's when that
// is empty, and looks at its sockets and timers after Config.Batch messages, or when there is nothing left to run; its
// tasks go first. A process must not block, nor compute for long: as in a task, all others wait meanwhile.
//
// A message to a process that does not run at the moment hands the reactor on: the receiver has the next turn there,
// while the message is in the caches; see [Ref.Send]. Such chains end with the turn of the reactor.
//
// # Mailboxes
//
// They are bounded, with room for 1024 messages, and whoever sends more waits: see [Options.Limit] and [Overflow]. Messages
// of one sender arrive in the order in which they were sent; those of several in any. What was sent is the receiver's:
// it is not copied, and a sender must not touch any more what it points to. Messages to those who have ended are
// dropped, and counted.
//
// # Ends
//
// A process ends when its action is Done or Failed, by [Self.Exit], [Self.Fail] or [Exit], by a panic, unless the Group's
// Config says Crash, by [Ref.Kill], and with those to which it is linked ([Link]). Those who [Watch] it get one [Notice]
// for each time they have asked; what it owns ends with it: alarms, errands, registrations.
//
// The System holds Run while any process is alive, since anybody may send to it; one without processes does not, so who
// spawns from outside has something else that does, or spawns the first in a set-up function. On an order, those whose
// action is a [Stopper] are told, and all go on; the System then holds Run only while something is ready or under way,
// alarms aside. So the end comes when tasks and services have ended and all processes sleep. If the order drops what is
// left, as the zero shutdown.Policy does, they are ended then, or when its bound has come; else they are there in the
// next Run of the Group, until it is closed. The Reason is [Stopped]. Orders are for the whole Group, and the bound that
// counts for processes is that in time: turns are not counted, so one that always yields needs it, and so do goroutines
// that go on sending.
//
// # What it is not
//
// A distributed system: a Ref means nothing in another program. There are no supervisors, no trapping of exits, and no
// names that are looked up; a monitor and a map do that. A coroutine (package coro) lives on one thread, so it can be
// a task, but no process.
package process
