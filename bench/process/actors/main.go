// Command actors does what command daimon does, with the actors of protoactor-go.
package main

import (
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/daimon-go/daimon/bench/process/measure"
)

func main() {
	measure.Main(map[string]func(*measure.Meter){
		"hand-off": handOff,
		"flood":    flood,
		"bounce":   bounce,
		"spawn":    spawn,
		"sleep":    sleep,
		"fan-in":   fanIn,
		"exchange": exchange,
		"light":    light,
	})
}

// Messages are pointers to existing objects. Otherwise the sender would allocate each message, as the value of an
// interface.
type (
	token struct{ _ byte }
	ball  struct{ hops int }
)

var (
	begin, next = &token{}, &token{}
)

// system returns a system that logs nothing.
func system() *actor.RootContext {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	return actor.NewActorSystem(quiet).Root
}

// stop is closed when all laps are done.
type stop chan struct{}

// handling returns an actor that calls f for all messages except messages of the system.
func handling(f func(c actor.Context, message any)) *actor.Props {
	return actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *token, *ball:
			f(c, m)
		}
	})
}

func handOff(m *measure.Meter) {
	root, over := system(), make(stop)
	var ping, pong *actor.PID
	pong = root.Spawn(handling(func(c actor.Context, x any) { c.Send(ping, x) }))
	left := 0
	ping = root.Spawn(handling(func(c actor.Context, x any) {
		if left == 0 {
			if !m.Lap(measure.Trips) {
				close(over)
				return
			}
			left = measure.Trips
		}
		left--
		c.Send(pong, x)
	}))
	root.Send(ping, next)
	<-over
}

// flood: senders to a bounded mailbox poll until there is room.
func flood(m *measure.Meter) {
	root, over := system(), make(stop)
	var source *actor.PID
	got := 0
	sink := root.Spawn(handling(func(c actor.Context, x any) {
		if got++; got < measure.Flooded {
			return
		}
		got = 0
		if !m.Lap(measure.Flooded) {
			close(over)
			return
		}
		c.Send(source, begin)
	}).Configure(actor.WithMailbox(actor.Bounded(measure.Bound))))
	source = root.Spawn(handling(func(c actor.Context, x any) {
		for range measure.Flooded {
			c.Send(sink, next)
		}
	}))
	m.Lap(0)
	root.Send(source, begin)
	<-over
}

func bounce(m *measure.Meter) {
	root, over := system(), make(stop)
	all := make([]*actor.PID, measure.Bouncers)
	balls := make([]ball, measure.Balls)
	var collector *actor.PID
	for i := range all {
		dice := measure.Dice(i + 1)
		all[i] = root.Spawn(handling(func(c actor.Context, x any) {
			b := x.(*ball)
			if b.hops == 0 {
				c.Send(collector, b)
				return
			}
			b.hops--
			c.Send(all[dice.Roll(len(all))], b)
		}))
	}
	back := measure.Balls - 1
	collector = root.Spawn(handling(func(c actor.Context, x any) {
		if back++; back < measure.Balls {
			return
		}
		if !m.Lap(measure.Balls * measure.Hops) {
			close(over)
			return
		}
		back = 0
		for i := range balls {
			balls[i].hops = measure.Hops - 1
			c.Send(all[i], &balls[i])
		}
	}))
	root.Send(collector, begin)
	<-over
}

// spawn: actors that stop themselves when they start.
func spawn(m *measure.Meter) {
	root := system()
	var ended sync.WaitGroup
	props := actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case *actor.Started:
			c.Stop(c.Self())
		case *actor.Stopped:
			ended.Done()
		}
	})
	for m.Lap(measure.Batches * measure.Batch) {
		for range measure.Batches {
			ended.Add(measure.Batch)
			for range measure.Batch {
				root.Spawn(props)
			}
			ended.Wait()
		}
	}
}

func sleep(m *measure.Meter) {
	root := system()
	all := make([]*actor.PID, m.Laps*measure.Sleepers)
	var met sync.WaitGroup
	props := handling(func(actor.Context, any) { met.Done() })
	before := measure.Footprint()
	for i := range all {
		all[i] = root.Spawn(props)
	}
	met.Add(len(all))
	for _, to := range all {
		root.Send(to, next)
	}
	met.Wait()
	m.Grown(before, len(all))
	runtime.KeepAlive(all)
}

func fanIn(m *measure.Meter) {
	root, over := system(), make(stop)
	all := make([]*actor.PID, measure.Senders)
	got := -1
	receiver := root.Spawn(handling(func(c actor.Context, x any) {
		if got++; got%(measure.Senders*measure.Each) > 0 {
			return
		}
		if !m.Lap(measure.Senders * measure.Each) {
			close(over)
			return
		}
		for _, to := range all {
			c.Send(to, begin)
		}
	}))
	for i := range all {
		all[i] = root.Spawn(handling(func(c actor.Context, x any) {
			for range measure.Each {
				c.Send(receiver, next)
			}
		}))
	}
	root.Send(receiver, begin)
	<-over
}

func exchange(m *measure.Meter) {
	root, over := system(), make(stop)
	all := make([]*actor.PID, measure.Pairs)
	done := measure.Pairs - 1
	collector := root.Spawn(handling(func(c actor.Context, x any) {
		if done++; done < measure.Pairs {
			return
		}
		if !m.Lap(2 * measure.Pairs * measure.Exchanges) {
			close(over)
			return
		}
		done = 0
		for _, to := range all {
			c.Send(to, begin)
		}
	}))
	for i := range all {
		var other *actor.PID
		left := 0
		all[i] = root.Spawn(handling(func(c actor.Context, x any) {
			if x == begin {
				left = measure.Exchanges
			}
			if left--; left < 0 {
				c.Send(collector, next)
				return
			}
			c.Send(other, next)
		}))
		other = root.Spawn(handling(func(c actor.Context, x any) { c.Send(all[i], next) }))
	}
	root.Send(collector, begin)
	<-over
}

func light(m *measure.Meter) {
	root := system()
	all := make([]*actor.PID, measure.Asked)
	for i := range all {
		all[i] = root.Spawn(handling(func(actor.Context, any) {}))
	}
	for m.Lap(measure.Requests) {
		for range measure.Requests {
			for _, to := range all {
				root.Send(to, next)
			}
			time.Sleep(measure.Gap)
		}
	}
}
