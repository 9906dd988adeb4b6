// Command shared measures one operation on a map that two schedulers share, in several ways: the time between two operations of
// both schedulers together, and the CPU time of one. See ../../docs/shared-state.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
)

const (
	keys    = 10_000
	writes  = 10 // in a hundred operations
	clients = 64 // tasks on each of two schedulers
)

// operation is one of a key-value server: a get or a set.
type operation struct {
	key   int
	set   bool
	value int // what was set, or what a get has got
}

func (o *operation) on(m map[int]int) {
	if o.set {
		m[o.key] = o.value
	} else {
		o.value = m[o.key]
	}
}

// way is a way to share a map. Its set-up functions come first. next returns the action of an operation.
type way struct {
	setup func(*act.Scheduler) error
	next  func(s *act.Scheduler, o operation) act.Action
}

// at once is an action that is done in the turn that it is called.
func atOnce(f func()) act.Action {
	return act.Func(func(*act.Task) act.Directive {
		f()
		return act.Done
	})
}

var own = act.NewLocal(func(*act.Scheduler) map[int]int { return map[int]int{} })

// none shares nothing: each scheduler has a map of its own. It is what the others are compared with.
func none() way {
	return way{next: func(s *act.Scheduler, o operation) act.Action {
		return atOnce(func() { o.on(own.Get(s)) })
	}}
}

func locks(n int) way {
	type shard struct {
		sync.Mutex
		m map[int]int
		_ [64]byte // a cache line of its own
	}
	shards := make([]shard, n)
	for i := range shards {
		shards[i].m = map[int]int{}
	}
	return way{next: func(_ *act.Scheduler, o operation) act.Action {
		return atOnce(func() {
			x := &shards[o.key%n]
			x.Lock()
			o.on(x.m)
			x.Unlock()
		})
	}}
}

// owner has the map on the first scheduler, which the others call.
func owner() way {
	return way{next: func(s *act.Scheduler, o operation) act.Action {
		first := s.Group().Schedulers()[0]
		a := atOnce(func() { o.on(own.Get(first)) })
		if s == first {
			return a
		}
		return act.On(first, a)
	}}
}

// copies has a copy of the map on each scheduler. A set is a broadcast, and does not wait until it has happened everywhere.
func copies() way {
	return way{next: func(s *act.Scheduler, o operation) act.Action {
		if !o.set {
			return atOnce(func() { o.on(own.Get(s)) })
		}
		return act.Func(func(t *act.Task) act.Directive {
			if err := s.Group().Broadcast(func(s *act.Scheduler) { o.on(own.Get(s)) }); err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})
	}}
}

type question struct {
	operation
	reply process.Reply[int]
}

// asked has the map in a process.
func asked() way {
	sys := process.New()
	var ref process.Ref[question]
	return way{
		setup: func(s *act.Scheduler) error {
			if err := sys.Setup(s); err != nil || s.Index() > 0 {
				return err
			}
			m := map[int]int{}
			ref = process.Spawn(sys, process.Handler(func(p *process.Self[question], q question) {
				q.on(m)
				q.reply.Send(q.value)
			}), process.Options{Name: "map"})
			return nil
		},
		next: func(_ *act.Scheduler, o operation) act.Action {
			return &process.Ask[question, int]{To: ref, Within: time.Minute, Message: func(r process.Reply[int]) question {
				return question{o, r}
			}}
		},
	}
}

// client is a task that has one operation after the other, each in a turn of its own, as the messages of a client are.
type client struct {
	way
	left    int
	rand    *rand.Rand
	present act.Action
	ended   func()
}

func (c *client) Act(t *act.Task) act.Directive {
	if c.present == nil {
		if c.left == 0 {
			c.ended()
			return act.Done
		}
		c.left--
		c.present = c.next(t.Scheduler(), operation{key: c.rand.IntN(keys), set: c.rand.IntN(100) < writes, value: c.left})
	}
	d := c.present.Act(t)
	if d != act.Done {
		return d
	}
	c.present = nil
	return act.Yield
}

func main() {
	testing.Init() // for -test.benchtime
	count := flag.Int("count", 3, "how often each way is measured")
	flag.Parse()
	for range *count {
		for _, row := range []struct {
			name string
			way  func() way
		}{
			{"none", none},
			{"mutex", func() way { return locks(1) }},
			{"sharded", func() way { return locks(64) }},
			{"copies", copies},
			{"owner", owner},
			{"process", asked},
		} {
			fmt.Printf("%-8s%s\n", row.name, testing.Benchmark(func(b *testing.B) { measure(b, row.way()) }))
		}
	}
}

func measure(b *testing.B, w way) {
	ctx, cancel := context.WithCancel(context.Background())
	var running atomic.Int64
	running.Store(2 * clients)
	ended := func() { // a process would live on
		if running.Add(-1) == 0 {
			cancel()
		}
	}
	setup := func(s *act.Scheduler) error {
		if w.setup != nil {
			if err := w.setup(s); err != nil {
				return err
			}
		}
		for i := range clients {
			seed := uint64(s.Index()*clients + i)
			n := (b.N + int(seed)) / (2 * clients)
			s.Spawn(&client{way: w, left: n, rand: rand.New(rand.NewPCG(seed, 1)), ended: ended})
		}
		return nil
	}
	before := used()
	if err := act.Run(ctx, act.Config{Schedulers: 2}, setup); err != nil {
		panic(err)
	}
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}

// used returns the CPU time of this program, in ns.
func used() int64 {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r) // fails only for other arguments
	return r.Utime.Nano() + r.Stime.Nano()
}
