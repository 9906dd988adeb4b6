package main

import (
	"context"
	"log"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/bench/process/measure"
	"github.com/daimon-go/daimon/process"
)

// handOff: two processes answer each other on one scheduler.
func handOff(m *measure.Meter) {
	run(1, func(sys *process.System, stop func()) {
		var ping, pong process.Ref[int]
		pong = spawned(sys, func(p *process.Self[int], x int) { send(ping, p, x) })
		left := 0
		ping = spawned(sys, func(p *process.Self[int], x int) {
			if left == 0 {
				if !m.Lap(measure.Trips) {
					stop()
					return
				}
				left = measure.Trips
			}
			left--
			send(pong, p, x)
		})
		send(ping, sys, 0)
	})
}

// message is a message with the scheduler that it was sent on.
type message struct{ sent, hops int }

func messageFrom(p *process.Self[message], hops int) message {
	return message{p.Scheduler().Index(), hops}
}

// crossings counts messages that were received on another scheduler than they were sent on.
type crossings struct{ n int }

func (c *crossings) note(p *process.Self[message], l message) {
	if l.sent != p.Scheduler().Index() {
		c.n++
	}
}

// flood: one process sends to another, and waits while the mailbox is full.
func flood(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		var source process.Ref[message]
		var crossed crossings
		got, all := 0, 0
		sink := process.Spawn(sys, process.Handler[message](func(p *process.Self[message], l message) {
			crossed.note(p, l)
			if got++; got == measure.Flooded {
				all += got
				got = 0
				if !m.Lap(measure.Flooded) {
					m.Cross(crossed.n, all)
					stop()
					return
				}
				send(source, p, message{})
			}
		}), process.Options{Limit: measure.Bound})
		left := 0
		source = process.Spawn(sys, process.Func[message](func(p *process.Self[message]) act.Directive {
			if _, ok := p.Receive(); ok {
				left = measure.Flooded
			}
			for range min(left, measure.Burst) {
				send(sink, p, messageFrom(p, 0))
				left--
			}
			if left > 0 {
				return act.Yield
			}
			return act.Wait
		}), process.Options{})
		m.Lap(0)
		send(source, sys, message{})
	})
}

// bounce: balls go from process to process, at random.
func bounce(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		var collector process.Ref[message]
		all := make([]process.Ref[message], measure.Bouncers)
		crossed := make([]struct {
			crossings
			_ [120]byte // each its own cache lines
		}, len(all))
		for i := range all {
			dice := measure.Dice(i + 1)
			all[i] = spawned(sys, func(p *process.Self[message], l message) {
				crossed[i].note(p, l)
				if l.hops == 0 {
					send(collector, p, l)
					return
				}
				send(all[dice.Roll(len(all))], p, messageFrom(p, l.hops-1))
			})
		}
		back := measure.Balls
		collector = spawned(sys, func(p *process.Self[message], l message) {
			if back++; back < measure.Balls {
				return
			}
			if !m.Lap(measure.Balls * measure.Hops) {
				n := 0
				for i := range crossed {
					n += crossed[i].n
				}
				m.Cross(n, measure.Balls*measure.Hops*(m.Laps+1))
				stop()
				return
			}
			back = 0
			for i := range measure.Balls {
				send(all[i], p, messageFrom(p, measure.Hops-1))
			}
		})
		back--
		send(collector, sys, message{})
	})
}

// fanIn: many send to one.
func fanIn(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		all := make([]process.Ref[int], measure.Senders)
		got := -1
		receiver := spawned(sys, func(p *process.Self[int], x int) {
			if got++; got%(measure.Senders*measure.Each) > 0 {
				return
			}
			if !m.Lap(measure.Senders * measure.Each) {
				stop()
				return
			}
			for _, to := range all {
				send(to, p, 0)
			}
		})
		for i := range all {
			all[i] = spawned(sys, func(p *process.Self[int], x int) {
				for range measure.Each {
					send(receiver, p, x)
				}
			})
		}
		send(receiver, sys, 0)
	})
}

// exchange: pairs of processes answer each other.
func exchange(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) {
		all := make([]process.Ref[bool], measure.Pairs)
		done := measure.Pairs - 1
		collector := spawned(sys, func(p *process.Self[bool], _ bool) {
			if done++; done < measure.Pairs {
				return
			}
			if !m.Lap(2 * measure.Pairs * measure.Exchanges) {
				stop()
				return
			}
			done = 0
			for _, to := range all {
				send(to, p, true)
			}
		})
		for i := range all {
			var other process.Ref[bool]
			left := 0
			all[i] = spawned(sys, func(p *process.Self[bool], begin bool) {
				if begin {
					left = measure.Exchanges
				}
				if left--; left < 0 {
					send(collector, p, true)
					return
				}
				send(other, p, false)
			})
			other = spawned(sys, func(p *process.Self[bool], _ bool) { send(all[i], p, false) })
		}
		send(collector, sys, true)
	})
}

// light: now and then a task sends messages to a few processes that do nothing. The cost is that of waking.
func light(m *measure.Meter) {
	runOn(m.Reactors, func(s *act.Scheduler, sys *process.System, stop func()) {
		all := make([]process.Ref[int], measure.Asked)
		for i := range all {
			all[i] = spawned(sys, func(*process.Self[int], int) {})
		}
		left := 0
		var timer act.Timer
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if left == 0 {
				if !m.Lap(measure.Requests) {
					stop()
					return act.Done
				}
				left = measure.Requests
			}
			left--
			for _, to := range all {
				send(to, t, 0)
			}
			t.WakeAfter(&timer, measure.Gap)
			return act.Wait
		}))
	})
}

// calls: a goroutine calls a process.
func calls(m *measure.Meter) {
	run(m.Reactors, func(sys *process.System, stop func()) { callFrom(m, sys, stop) })
}

// callsBesideTasks: tasks keep one of the schedulers busy.
func callsBesideTasks(m *measure.Meter) {
	runOn(m.Reactors, func(s *act.Scheduler, sys *process.System, stop func()) {
		for range measure.Tasks {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				for began := time.Now(); time.Since(began) < measure.Turn; {
				}
				if t.Order() != nil {
					return act.Done
				}
				return act.Yield
			}))
		}
		callFrom(m, sys, stop)
	})
}

func callFrom(m *measure.Meter, sys *process.System, stop func()) {
	echo := spawned(sys, func(p *process.Self[process.Reply[int]], r process.Reply[int]) { r.Send(0) })
	question := func(r process.Reply[int]) process.Reply[int] { return r }
	go func() {
		defer stop()
		for m.Lap(measure.Calls) {
			for range measure.Calls {
				if _, err := process.Call(context.Background(), echo, question); err != nil {
					log.Fatal(err)
				}
			}
		}
	}()
}
