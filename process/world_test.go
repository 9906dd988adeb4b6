package process_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldProcesses has processes that pass tokens on in all possible ways, and sometimes end. No token is lost except with a
// process that ends, no process has two turns at once, and each end is reported as often as it is watched.
func TestWorldProcesses(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		c := newCrowd(w)
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 1), Logger: zap.NewNop()}
		v, err := w.Server("crowd", cfg, c.sys.Setup, c.setUp)
		require.NoError(t, err)
		if w.Rand().IntN(3) == 0 {
			c.ordered = true
			terms := pick(w, shutdown.Policy{Kind: shutdown.Unbounded}, shutdown.Policy{Time: time.Minute}, shutdown.Policy{Time: time.Millisecond, Drop: true})
			w.At(time.Duration(w.Rand().Int64N(int64(10*time.Second))), func() { v.Shutdown(terms) })
		}
		late(t, w, c.check)
	})
}

// late calls check when nothing happens any more.
func late(t *testing.T, w *sim.World, check func()) {
	last := &service.Listener{Address: "10.0.0.1:7007", Handler: echo.Echo}
	_, err := w.Server("last", act.Config{}, last.Setup)
	require.NoError(t, err)
	w.Client("10.0.0.1:7007", func(k *sim.Client) error {
		k.Sleep(3*time.Minute - w.Now())
		check()
		return nil
	})
}

func pick[T any](w *sim.World, all ...T) T { return all[w.Rand().IntN(len(all))] }

// crowd is the System with its processes.
type crowd struct {
	w       *sim.World
	sys     *process.System
	endRate int
	ordered bool

	parent  process.Ref[news]
	counter process.Ref[int]
	members []process.Ref[tokenMessage]

	begun, arrived, lost, hops int
	counted                    int
	spawned                    int
	notices                    map[process.AnyRef]int // notices of each end
}

func newCrowd(w *sim.World) *crowd {
	return &crowd{w: w, endRate: pick(w, 0, 200, 2000), notices: map[process.AnyRef]int{}, sys: process.WithBounds(
		pick(w, 1024, 1, 4), pick(w, 16, 1, 3), pick(w, 64, 1, 5))}
}

// setUp is a set-up function.
func (c *crowd) setUp(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	c.counter = process.Spawn(c.sys, process.Handler[int](func(_ *process.Self[int], n int) { c.counted += n }), process.Options{})
	c.parent = process.Spawn(c.sys, process.Handler[news](c.hear), process.Options{Limit: -1})
	c.members = make([]process.Ref[tokenMessage], 2+c.w.Rand().IntN(10))
	for i := range c.members {
		_ = c.parent.Send(c.sys, news{index: i})
	}
	for range c.w.Rand().IntN(40) {
		c.begun++
		_ = c.parent.Send(c.sys, news{index: -1, token: tokenMessage{hops: 1 + c.w.Rand().IntN(100)}})
	}
	return nil
}

// news is a message to the parent: a member to spawn, the end of a member, or a token to send.
type news struct {
	index int // -1: none
	end   *process.Notice
	token tokenMessage
}

func (c *crowd) hear(p *process.Self[news], n news) {
	switch {
	case n.end != nil:
		c.ended(p, *n.end)
	case n.index >= 0:
		c.spawn(p, n.index)
	default:
		_ = c.member().Send(p, n.token)
	}
}

// spawn spawns member i, which the parent watches twice.
func (c *crowd) spawn(p *process.Self[news], i int) {
	m := process.Spawn(p, &member{c: c}, process.Options{Limit: -1, Name: fmt.Sprint("member ", i)})
	c.spawned++
	c.members[i] = m
	for range 2 {
		process.Watch(p, m, func(n process.Notice) news { return news{index: -1, end: &n} })
	}
	if other := c.member(); c.w.Happens(3000) && other.ID() != 0 {
		process.Link(m, other, pick(c.w, false, true))
	}
}

func (c *crowd) ended(p *process.Self[news], n process.Notice) {
	if c.notices[n.Of]++; c.notices[n.Of] == 2 {
		for i, m := range c.members {
			if m == n.Of {
				c.spawn(p, i)
			}
		}
	}
}

func (c *crowd) member() process.Ref[tokenMessage] { return c.members[c.w.Rand().IntN(len(c.members))] }

// tokenMessage is a token that goes from member to member.
type tokenMessage struct {
	hops  int
	query process.Reply[int] // if asks
	asks  bool
}

// member is a process that passes tokens on.
type member struct {
	c       *crowd
	running bool
	closed  bool
	away    int // tokens of operations under way
}

func (m *member) Act(p *process.Self[tokenMessage]) act.Directive {
	if m.running || m.closed {
		m.c.w.Errorf("%v has two turns at once, or one after its end", p)
	}
	m.running = true
	defer func() { m.running = false }()
	for {
		k, ok := p.Receive()
		switch {
		case !ok && m.c.w.Happens(100):
			return act.Yield
		case !ok:
			return act.Wait
		case k.asks:
			k.query.Send(k.hops)
			continue
		}
		if m.ends(p) {
			m.c.lost++
			return p.Fail(errors.New("a bad day"))
		}
		m.pass(p, k)
	}
}

// Close counts the tokens of operations, which end with the process.
func (m *member) Close() error {
	if m.closed {
		m.c.w.Errorf("a member was closed twice")
	}
	m.closed = true
	m.c.lost += m.away
	return nil
}

func (m *member) ends(p *process.Self[tokenMessage]) bool {
	w := m.c.w
	switch {
	case w.Happens(m.c.endRate):
		return true
	case w.Happens(m.c.endRate):
		m.c.member().Kill()
	case w.Happens(m.c.endRate):
		m.c.lost++
		panic("a bug")
	}
	return false
}

// pass sends k to another member, or to this one later.
func (m *member) pass(p *process.Self[tokenMessage], k tokenMessage) {
	c, w := m.c, m.c.w
	c.hops++
	if err := c.counter.Send(p, 1); err != nil && !c.ordered {
		w.Errorf("the counter: %v", err)
	}
	if k.hops--; k.hops <= 0 {
		c.arrived++
		return
	}
	back := func() tokenMessage { m.away--; return k }
	m.away++
	switch w.Rand().IntN(12) {
	case 0:
		process.Do(p, &listener.Sleep{For: c.delay()}, func(error) tokenMessage { return back() })
	case 1:
		process.Do(p, &act.Call[int]{F: func() (int, error) { return 1, nil }}, func(error) tokenMessage { return back() })
	case 2:
		f := future.New[int](p.Scheduler())
		process.Do(p, f.Await(), func(error) tokenMessage { return back() })
		w.At(w.Now()+c.delay(), func() { _ = f.Resolve(1) })
	case 3:
		ask := &process.Ask[tokenMessage, int]{To: c.member(), Within: c.delay(), Message: func(r process.Reply[int]) tokenMessage {
			return tokenMessage{hops: 7, asks: true, query: r}
		}}
		process.Do(p, ask, func(err error) tokenMessage {
			if err == nil && ask.Value != 7 {
				w.Errorf("the answer is %d", ask.Value)
			}
			return back()
		})
	case 4:
		x := p.After(c.delay(), k)
		m.away-- // the timer sends it
		if w.Happens(5000) && x.Cancel() {
			_ = p.Ref().Send(p, k)
		}
	default:
		m.away--
		_ = c.member().Send(p, k)
	}
}

func (c *crowd) delay() time.Duration {
	return time.Duration(c.w.Rand().Int64N(int64(pick(c.w, time.Millisecond, time.Second))))
}

// check checks the counts long after the last token must have arrived.
func (c *crowd) check() {
	n := c.sys.Counted()
	if c.ordered {
		return
	}
	unknown := c.begun - c.arrived - c.lost // dropped in mailboxes, and timers that ended with their process
	if n.Ended == 0 && unknown != 0 {
		c.w.Errorf("of %d tokens %d have arrived, and no process has ended", c.begun, c.arrived)
	}
	if unknown < 0 {
		c.w.Errorf("of %d tokens %d have arrived and %d were lost", c.begun, c.arrived, c.lost)
	}
	if c.counted != c.hops {
		c.w.Errorf("%d of %d hops are in the counter", c.counted, c.hops)
	}
	if dead := c.spawned - len(c.members); dead != len(c.notices) {
		c.w.Errorf("%d members have ended, and %d ends were reported", dead, len(c.notices))
	}
	for of, times := range c.notices {
		if times != 2 {
			c.w.Errorf("%v: %d notices of 2", of, times)
		}
	}
	if alive := len(c.members) + 2; c.sys.Alive() != alive {
		c.w.Errorf("%d are alive, of %d", c.sys.Alive(), alive)
	}
}

// TestWorldSupervision has children that fail in all ways. Each message arrives once and in order, each Action ends before
// the next one is made, with Rest after those behind it, and a supervisor ends after its children.
func TestWorldSupervision(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		b := &brood{w: w, sys: process.WithBounds(pick(w, 1024, 1, 4), pick(w, 16, 1, 3), pick(w, 64, 1, 5))}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 1), Logger: zap.NewNop()}
		_, err := w.Server("brood", cfg, b.sys.Setup, b.setUp)
		require.NoError(t, err)
		late(t, w, b.check)
	})
}

// brood are children, and a process that sends to them.
type brood struct {
	w        *sim.World
	sys      *process.System
	rest     bool
	parents  []process.Supervisor // the second one is a child of the first
	children []*sibling
	over     [2]bool
	sent     int
}

type sibling struct {
	*brood
	process.Ref[int]
	index, of      int
	sent, received int
	alive          *incarnation
	done           bool
}

type incarnation struct{ *sibling }

func (b *brood) setUp(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	b.rest = pick(b.w, false, true)
	how := process.Supervision{Rest: b.rest, Restarts: pick(b.w, -1, -1, 5), Within: time.Second, Wait: pick(b.w, 1, time.Millisecond)}
	b.parents = append(b.parents, process.Supervise(b.sys, how))
	how.Parent, how.Restarts = b.parents[0], 5
	b.parents = append(b.parents, process.Supervise(b.sys, how))
	for i := range 2 + b.w.Rand().IntN(8) {
		c := &sibling{brood: b, index: i, of: pick(b.w, 0, 0, 1)}
		c.Ref = process.SpawnChild(b.parents[c.of], c.create, process.Options{})
		b.children = append(b.children, c)
	}
	driver := process.Spawn(b.sys, process.Handler(b.drive), process.Options{Limit: -1})
	return driver.Send(b.sys, -1)
}

// drive sends to children: 1,000 messages. n is a supervisor that has ended, or less than 0.
func (b *brood) drive(p *process.Self[int], n int) {
	if n >= 0 {
		b.over[n] = true
		for _, c := range b.children {
			if c.alive != nil && (c.of == n || n == 0) {
				b.w.Errorf("supervisor %d ends before child %d", n, c.index)
			}
		}
		return
	}
	if b.sent == 0 {
		for i, s := range b.parents {
			process.Watch(p, s, func(process.Notice) int { return i })
		}
	}
	for range b.w.Rand().IntN(10) {
		c := b.children[b.w.Rand().IntN(len(b.children))]
		if c.Send(p, c.sent) == nil {
			c.sent++
		}
	}
	if b.sent++; b.sent < 200 {
		p.After(time.Duration(b.w.Rand().Int64N(int64(pick(b.w, time.Millisecond, 100*time.Millisecond)))), -1)
	}
}

func (c *sibling) create() process.Action[int] {
	if c.alive != nil {
		c.w.Errorf("child %d is alive twice", c.index)
	}
	for _, other := range c.children {
		if c.rest && other.of == c.of && other.index > c.index && other.alive != nil {
			c.w.Errorf("child %d starts while %d is alive", c.index, other.index)
		}
	}
	if c.w.Happens(100) {
		panic("a bug")
	}
	c.alive = &incarnation{c}
	return c.alive
}

func (x *incarnation) Act(p *process.Self[int]) act.Directive {
	if x.alive != x {
		x.w.Errorf("child %d has a turn after its end", x.index)
	}
	for n, ok := p.Receive(); ok; n, ok = p.Receive() {
		if n != x.received {
			x.w.Errorf("child %d receives message %d after %d", x.index, n, x.received-1)
		}
		x.received++
		switch w := x.w; {
		case w.Happens(500):
			return p.Fail(errors.New("a bad day"))
		case w.Happens(500):
			panic("a bug")
		case w.Happens(500):
			x.children[w.Rand().IntN(len(x.children))].Kill()
		case w.Happens(200):
			x.done = true
			p.Exit()
		case w.Happens(100):
			x.parents[1].Kill()
		}
	}
	return act.Wait
}

func (x *incarnation) Close() error {
	if x.alive != x {
		x.w.Errorf("child %d is closed twice", x.index)
	}
	x.alive = nil
	return nil
}

func (b *brood) check() {
	for _, c := range b.children {
		over := c.done || b.over[c.of]
		if over != process.Ended(c.Ref).Resolved() || over == (c.alive != nil) || !over && c.sent != c.received {
			b.w.Errorf("child %d: over %v, alive %v, %d sent, %d received", c.index, over, c.alive != nil, c.sent, c.received)
		}
	}
}
