package process

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// asleep spawns processes, and runs until they sleep.
func (w *world) asleep(o Options, names ...string) []*proc {
	var all []*proc
	for _, name := range names {
		all = append(all, w.spawn(name, o, nil))
	}
	w.runUntilIdle(false)
	return all
}

// spawnAt spawns a process into a queue, before any runner is idle.
func (w *world) spawnAt(queue int, name string, first func(p *Self[msg])) *proc {
	w.sys.outside.turn.Store(uint32(queue + len(w.loops) - 1))
	return w.spawn(name, Options{}, first)
}

// task makes a task of a scheduler call f, now or later.
func (w *world) task(runner int, f func(from Sender)) {
	x := w.loops[runner]
	x.todo = append(x.todo, func() { f(onThread{x}) })
}

// drain is an order whose bound is never reached.
type drain struct{}

func (drain) Policy() shutdown.Policy { return shutdown.Policy{} }

// shutdown gives all schedulers an order.
func (w *world) shutdown() {
	w.given = true
	w.sys.group.Shutdown(drain{})
}

// has sends a process a message with what to do in its turn.
func (w *world) has(to *proc, f func(p *Self[msg])) { _ = w.send(w.sys, "set-up", to, f) }

// cases are small enough to try all schedules.
var cases = []small{
	{"two send to one that sleeps", shape{runners: 1, preemptions: 3}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		for _, name := range []string{"one", "two"} {
			w.thread(name, func() { _ = w.send(w.sys, name, to, nil) })
		}
	}},
	{"a message to a process that falls asleep", shape{runners: 1, preemptions: 3}, func(w *world) {
		to := w.spawn("to", Options{}, nil)
		w.thread("one", func() {
			_ = w.send(w.sys, "one", to, nil)
			_ = w.send(w.sys, "one", to, nil)
		})
	}},
	{"a hand-off while the receiver is dequeued", shape{runners: 2, preemptions: 2}, func(w *world) {
		var from, to *proc
		to = w.spawn("to", Options{}, nil)
		from = w.spawn("from", Options{}, func(p *Self[msg]) { from.give(p, to) })
	}},
	{"a hand-off while the receiver is stolen", shape{runners: 3, preemptions: 1}, func(w *world) {
		var from, to *proc
		to = w.spawn("to", Options{}, nil) // in queue 1
		_ = w.spawn("stolen", Options{}, nil)
		from = w.spawn("from", Options{}, func(p *Self[msg]) { from.give(p, to) })
	}},
	{"two hand-offs to one receiver", shape{runners: 2, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		for _, name := range []string{"one", "two"} {
			var from *proc
			from = w.spawn(name, Options{}, func(p *Self[msg]) { from.give(p, to) })
		}
	}},
	{"a task sends on a runner that becomes idle", shape{runners: 2, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{}, "to", "other")
		w.sys.runners[0].wake()
		w.task(0, func(from Sender) {
			_ = w.send(from, "task", to[0], nil)
			_ = w.send(from, "task", to[1], nil)
		})
	}},
	{"a hand-off after the receiver was stolen", shape{runners: 2, preemptions: 2}, func(w *world) {
		var from, to *proc
		from = w.spawnAt(0, "from", func(p *Self[msg]) { from.give(p, to) })
		w.spawnAt(0, "first", nil)
		to = w.spawnAt(0, "to", nil)
		w.spawnAt(0, "last", nil)
	}},
	{"spawned for an idle runner whose queue is locked", shape{runners: 2, preemptions: 2}, func(w *world) {
		w.spawnAt(1, "stolen", nil) // the other steals it
		w.thread("one", func() { w.spawnFrom(w.sys, "new", Options{}, nil) })
	}},
	{"sent to an idle runner whose queue is locked", shape{runners: 2, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{}, "to", "stolen")
		w.sys.runners[0].wake()
		w.has(all[1], nil) // the other steals it there
		w.thread("one", func() { _ = w.send(w.sys, "one", all[0], nil) })
	}},
	{"killed while two wait for each other", shape{runners: 1, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{Limit: 1}, "one", "two")
		all[0].lazy, all[1].lazy = true, true
		answer := func(p *Self[msg]) {
			all[1].give(p, all[0])
			all[1].give(p, all[0])
		}
		w.has(all[0], func(p *Self[msg]) {
			_ = w.send(p, "one", all[1], answer)
			_ = w.send(p, "one", all[1], nil)
		})
		w.run(false)
		w.thread("killer", func() {
			all[0].ref.Kill()
			w.await("one to be dead", func() bool { return all[0].dead() })
		})
	}},
	{"a sender waits for room that is just made", shape{runners: 2, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{Limit: 1}, "to")[0]
		w.has(to, nil)
		var from *proc
		from = w.spawn("from", Options{}, func(p *Self[msg]) {
			from.give(p, to)
			from.give(p, to)
		})
	}},
	{"two wait for room that is enough for one", shape{runners: 1, preemptions: 1}, func(w *world) {
		to := w.spawn("to", Options{Limit: 1}, nil)
		for _, name := range []string{"one", "two"} {
			other := w.spawn("behind "+name, Options{}, nil)
			var from *proc
			from = w.spawn(name, Options{}, func(p *Self[msg]) {
				from.give(p, other) // gets the thread, so that these processes have their turns before to
				from.give(p, to)
				from.give(p, to)
			})
		}
	}},
	{"sent to while it waits for room", shape{runners: 1, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{Limit: 1}, "to")[0]
		from := w.asleep(Options{}, "from")[0]
		from.lazy = true // so it does not receive during its turn
		begun := false
		w.has(from, func(p *Self[msg]) {
			w.has(from, nil)
			begun = true
			from.give(p, to)
			from.give(p, to)
		})
		w.thread("one", func() {
			w.await("the turn", func() bool { return begun })
			w.has(from, nil)
		})
	}},
	{"two goroutines wait for room", shape{runners: 1, preemptions: 1}, func(w *world) {
		to := w.asleep(Options{Limit: 1}, "to")[0]
		w.has(to, nil)
		for _, name := range []string{"one", "two"} {
			w.thread(name, func() { w.deliver(name, to) })
		}
	}},
	{"one of two waiters for room gives up", shape{runners: 1, preemptions: 1}, func(w *world) {
		to := w.asleep(Options{Limit: 1}, "to")[0]
		w.has(to, nil)
		w.thread("one", func() {
			if b, ok := w.send(w.sys, "one", to, nil).(*blockedSend); ok {
				b.join(new(signal))
			}
		})
		w.thread("two", func() { w.deliver("two", to) })
	}},
	{"one of two waiters for room gives up when there is room", shape{runners: 1, preemptions: 1}, func(w *world) {
		to := w.asleep(Options{Limit: 2}, "to")[0]
		to.spare = 2
		w.has(to, nil)
		w.has(to, nil)
		w.thread("one", func() {
			if b, ok := w.send(w.sys, "one", to, nil).(*blockedSend); ok {
				if s := b.join(new(signal)); s != nil {
					b.giveUp(s)
				}
			}
		})
		w.thread("two", func() { w.deliver("two", to) })
		w.thread("maker of room", func() {
			to.spare = 1
			to.ref.p.Poke()
		})
	}},
	{"it ends while a sender waits for room", shape{runners: 2, preemptions: 1}, func(w *world) {
		to := w.asleep(Options{Limit: 1}, "to")[0]
		w.has(to, func(p *Self[msg]) { p.Exit() })
		w.thread("one", func() { w.deliver("one", to) })
		var from *proc
		from = w.spawn("from", Options{}, func(p *Self[msg]) { from.give(p, to) })
	}},
	{"all become idle, and Quiescent is called", shape{runners: 2, preemptions: 2}, func(w *world) {
		w.asleep(Options{}, "one", "two")
		w.thread("asker", w.ask)
	}},
	{"something is sent while all become idle", shape{runners: 2, preemptions: 1}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.has(to, nil)
		w.ask()
		w.thread("one", func() {
			_ = w.send(w.sys, "one", to, nil)
			w.ask()
		})
	}},
	{"something is sent that takes long while all become idle", shape{runners: 2, preemptions: 1}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.has(to, nil)
		w.thread("one", func() {
			w.has(to, func(*Self[msg]) {
				other := w.threads[0]
				if other == w.now {
					other = w.threads[1]
				}
				w.await("the other to become idle", other.idles)
			})
			w.ask()
		})
	}},
	{"Quiescent after a message, with another under way", shape{runners: 2, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.thread("one", func() { _ = w.send(w.sys, "one", to, nil) })
		w.thread("two", func() {
			_ = w.send(w.sys, "two", to, nil)
			w.ask()
		})
	}},
	{"Quiescent before a message that is under way", shape{runners: 1, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.has(to, nil)
		w.ask()
		w.thread("one", func() { _ = w.send(w.sys, "one", to, nil) })
	}},
	{"the last process ends, and Run may return", shape{runners: 2, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.has(to, func(p *Self[msg]) { p.Exit() })
	}},
	{"queued behind a long turn", shape{runners: 2, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{}, "long", "next", "behind")
		w.sys.runners[0].wake()
		w.has(all[0], func(p *Self[msg]) {
			all[0].give(p, all[1]) // gets the thread
			all[0].give(p, all[2])
			w.await("its message to be received elsewhere", func() bool { return all[2].received == 1 })
		})
	}},
	{"sent to while one runner is in a long turn", shape{runners: 2, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{}, "long", "to")
		w.sys.runners[0].wake()
		w.has(all[0], func(*Self[msg]) {
			w.await("the message to be received elsewhere", func() bool { return all[1].received == 1 })
		})
		w.thread("one", func() { _ = w.send(w.sys, "one", all[1], nil) })
	}},
	{"sent to while one scheduler is in the long turn of a task", shape{runners: 2, preemptions: 2}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.noneRests = true
		w.sys.runners[0].wake()
		w.task(0, func(Sender) {
			w.await("the message to be received elsewhere", func() bool { return to.received == 1 })
		})
		w.thread("one", func() { _ = w.send(w.sys, "one", to, nil) })
	}},
	{"spawned while one runner is in a long turn", shape{runners: 2, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{}, "long")
		w.sys.runners[0].wake()
		began := false
		w.has(all[0], func(*Self[msg]) {
			w.await("the new process to begin elsewhere", func() bool { return began })
		})
		w.thread("one", func() { w.spawnFrom(w.sys, "new", Options{}, func(*Self[msg]) { began = true }) })
	}},
	{"more than a turn of messages", shape{runners: 2, preemptions: 1, messages: 1, batch: 1}, func(w *world) {
		all := w.asleep(Options{}, "to", "other")
		w.has(all[0], nil)
		w.has(all[0], func(p *Self[msg]) { all[0].give(p, all[1]) })
		w.has(all[1], nil)
		w.thread("one", func() { _ = w.send(w.sys, "one", all[0], nil) })
	}},
	{"an order while a process falls asleep", shape{runners: 2, preemptions: 2, ordered: true}, func(w *world) {
		all := w.asleep(Options{}, "to", "other")
		w.has(all[0], nil)
		w.shutdown()
	}},
	{"an order while a process is spawned", shape{runners: 2, preemptions: 1, ordered: true}, func(w *world) {
		w.runUntilIdle(false)
		w.shutdown()
		w.thread("one", func() { w.spawnFrom(w.sys, "new", Options{}, nil) })
	}},
	{"an order before the first turn", shape{runners: 1, preemptions: 2, ordered: true}, func(w *world) {
		to := w.spawn("to", Options{}, nil)
		w.shutdown()
		w.thread("one", func() { _ = w.send(w.sys, "one", to, nil) })
	}},
	{"a queue of many, stolen from by two", shape{runners: 3, preemptions: 1}, func(w *world) {
		all := w.asleep(Options{}, "from", "a", "b", "c", "d")
		w.has(all[0], func(p *Self[msg]) {
			for _, to := range all[1:] {
				all[0].give(p, to)
			}
		})
	}},
	{"a timer is due while all become idle", shape{runners: 2, preemptions: 1}, func(w *world) {
		var a *timer
		var to *proc
		to = w.spawn("to", Options{}, func(p *Self[msg]) { a = p.After(time.Hour, to.later()).(*timer) })
		if !w.runUntilIdle(false) {
			return
		}
		w.task(a.at.s.Index(), func(Sender) {
			a.timer.Stop()
			a.Expire()
		})
		w.sys.runners[1-a.at.s.Index()].wake()
		w.thread("asker", w.ask)
	}},
	{"a timer is due while it is stopped", shape{runners: 2, preemptions: 2}, func(w *world) {
		var a *timer
		stopped := false
		var to *proc
		to = w.spawn("to", Options{}, func(p *Self[msg]) { a = p.After(time.Hour, to.later()).(*timer) })
		if !w.runUntilIdle(false) {
			return
		}
		w.has(to, func(*Self[msg]) { stopped = a.Cancel() })
		w.task(a.at.s.Index(), func(Sender) {
			a.timer.Stop()
			a.Expire()
		})
		w.checks = append(w.checks, func() {
			if stopped {
				to.sent--
				w.pending--
			}
			if stopped == (to.heard["later"] == 1) {
				w.fail("stopped: %v, heard: %d", stopped, to.heard["later"])
			}
		})
	}},
	{"an operation finishes while it is cancelled", shape{runners: 2, preemptions: 2}, func(w *world) {
		x, to := w.operation()
		at, cancelled := to.core.on, false
		w.task(at.s.Index(), func(Sender) {
			x.finish(at, nil)
			x.waker.Wake()
		})
		w.thread("canceller", func() { cancelled = x.Cancel() })
		w.checks = append(w.checks, func() {
			if n := to.heard["later"]; cancelled == (n == 1) {
				w.fail("cancelled: %v, heard: %d", cancelled, n)
			}
		})
	}},
	{"answered while the asked process ends", shape{runners: 2, preemptions: 2}, func(w *world) {
		asked := w.asleep(Options{}, "asked")[0]
		answers := 0
		q := &question[int]{notify: func() { answers++ }}
		q.watchAsked(asked.ref)
		w.thread("answerer", func() { Reply[int]{q}.Send(1) })
		w.thread("killer", func() { asked.ref.Kill() })
		w.checks = append(w.checks, func() {
			if answers != 1 {
				w.fail("%d answers to one question", answers)
			}
		})
	}},
	{"linked while one of them ends", shape{runners: 2, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{}, "one", "two")
		w.has(all[0], func(p *Self[msg]) { p.Exit() })
		w.thread("linker", func() { Link(all[0].ref, all[1].ref, true) })
		w.checks = append(w.checks, func() {
			if !all[1].dead() {
				w.fail("%s is alive, though it was linked to one that has ended", all[1].name)
			}
		})
	}},
	{"a link and a watch are cancelled while a process ends", shape{runners: 2, preemptions: 2}, func(w *world) {
		all := w.asleep(Options{}, "one", "two", "watcher")
		linked := Link(all[0].ref, all[1].ref, true)
		watched := Watch(all[2].ref.p, all[0].ref, func(Notice) msg { return all[2].extra("notice") })
		var link, watch bool
		w.has(all[0], func(p *Self[msg]) { p.Exit() })
		w.thread("canceller", func() { link, watch = linked.Cancel(), watched.Cancel() })
		w.checks = append(w.checks, func() {
			if n := all[2].heard["notice"]; link && all[1].dead() || watch != (n == 0) {
				w.fail("link cancelled: %v, dead: %v; watch cancelled: %v, %d notices", link, all[1].dead(), watch, n)
			}
		})
	}},
	{"sent to while a scheduler leaves Run", shape{runners: 2, preemptions: 2, ordered: true}, func(w *world) {
		to := w.asleep(Options{}, "to")[0]
		w.shutdown()
		w.runUntilIdle(false)
		w.loops[0].leaves = true
		w.thread("one", func() { _ = w.send(w.sys, "one", to, nil) })
	}},
	{"the last process ends, and another is spawned, while a scheduler leaves Run",
		shape{runners: 2, preemptions: 2}, func(w *world) {
			to := w.asleep(Options{}, "to")[0]
			w.has(to, func(p *Self[msg]) { p.Exit() })
			w.runUntilIdle(false)
			w.loops[0].leaves = true
			w.thread("one", func() { w.spawn("new", Options{}, func(p *Self[msg]) { p.Exit() }) })
		}},
	{"a process is spawned while all are closed", shape{runners: 2, preemptions: 2}, func(w *world) {
		w.asleep(Options{}, "asleep")
		w.thread("closer", w.close)
		w.thread("one", func() { w.spawn("new", Options{}, nil) })
	}},
	{"a process is spawned while all are dropped, and Run begins again", shape{runners: 1, preemptions: 2}, func(w *world) {
		w.asleep(Options{}, "asleep")
		w.thread("runner", w.runAgain)
		w.thread("one", func() { w.spawn("new", Options{}, nil) })
	}},
}

// operation spawns a process with an operation that does not end by itself.
func (w *world) operation() (*job, *proc) {
	var x *job
	var to *proc
	to = w.spawn("to", Options{}, func(p *Self[msg]) {
		m := to.later()
		x = Do(p, act.Func(func(*act.Task) act.Directive { return act.Wait }), func(error) msg { return m }).(*job)
	})
	w.runUntilIdle(false)
	return x, to
}
