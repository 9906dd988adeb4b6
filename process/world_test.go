package process_test

import (
	"bufio"
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

// TestProcesses is a server whose connections ask processes, beside a crowd of others that pass on coins, in all the
// ways there are, and die of it. No question is left without an answer, no coin is lost but with the dead, nobody has
// two turns at once, and each death is told as often as somebody has asked for it.
func TestProcesses(t *testing.T) {
	sim.Test(t, func(w *sim.World) {
		c := newCrowd(w)
		server := &service.TCP{Address: "10.0.0.1:7", Handler: c.session}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 1), Logger: zap.NewNop()}
		v, err := w.Server("crowd", cfg, c.sys.Setup, server.Setup, c.gather)
		require.NoError(t, err)
		if w.Rand().IntN(3) == 0 {
			c.ordered = true
			terms := pick(w, shutdown.Unbounded, shutdown.Policy{Time: time.Minute}, shutdown.Policy{Time: time.Millisecond, Drop: true})
			w.At(time.Duration(w.Rand().Int64N(int64(10*time.Second))), func() { v.Shutdown(shutdown.Now{Terms: terms}) })
		}
		for i := range 1 + w.Rand().IntN(8) {
			w.Client("10.0.0.1:7", c.visitor(i))
		}
		last := &service.TCP{Address: "10.0.0.1:7007", Handler: echo.Echo}
		_, err = w.Server("last", act.Config{}, last.Setup)
		require.NoError(t, err)
		w.Client("10.0.0.1:7007", func(k *sim.Client) error {
			k.Sleep(3*time.Minute - w.Now())
			c.audit()
			return nil
		})
	})
}

func pick[T any](w *sim.World, all ...T) T { return all[w.Rand().IntN(len(all))] }

// crowd is who is there.
type crowd struct {
	w       *sim.World
	sys     *process.System
	deadly  int
	ordered bool

	elder   process.Ref[news]
	ledger  process.Ref[int]
	members []process.Ref[coin]
	clerk   process.Ref[deposit]

	begun, arrived, lost, hops, queries int
	booked                              int
	births                              int
	told                                map[process.AnyRef]int // of whose death how often
}

func newCrowd(w *sim.World) *crowd {
	return &crowd{w: w, deadly: pick(w, 0, 200, 2000), told: map[process.AnyRef]int{}, sys: process.New(process.Config{
		Limit: pick(w, 0, 1, 4), Messages: pick(w, 0, 1, 3), Batch: pick(w, 0, 1, 5),
	})}
}

// gather is a set-up function.
func (c *crowd) gather(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	c.clerk = process.Spawn(c.sys, process.Handler[deposit](c.book), process.Options{})
	c.ledger = process.Spawn(c.sys, process.Handler[int](func(_ *process.Self[int], n int) { c.booked += n }), process.Options{})
	c.elder = process.Spawn(c.sys, process.Handler[news](c.hear), process.Options{Limit: process.Unbounded})
	c.members = make([]process.Ref[coin], 2+c.w.Rand().IntN(10))
	for i := range c.members {
		_ = c.elder.Send(c.sys, news{birth: i})
	}
	for range c.w.Rand().IntN(40) {
		c.begun++
		_ = c.elder.Send(c.sys, news{birth: -1, coin: coin{hops: 1 + c.w.Rand().IntN(100)}})
	}
	return nil
}

// news is what the elder hears: that somebody is to be born, that somebody has ended, or a coin for the crowd.
type news struct {
	birth int // -1: none
	death *process.Notice
	coin  coin
}

func (c *crowd) hear(p *process.Self[news], n news) {
	switch {
	case n.death != nil:
		c.bury(p, *n.death)
	case n.birth >= 0:
		c.bear(p, n.birth)
	default:
		_ = c.member().Send(p, n.coin)
	}
}

// bear makes member i, of whose end the elder hears twice.
func (c *crowd) bear(p *process.Self[news], i int) {
	m := process.Spawn(p, &member{c: c}, process.Options{Limit: process.Unbounded, Name: fmt.Sprint("member ", i)})
	c.births++
	c.members[i] = m
	for range 2 {
		process.Watch(p, m, func(n process.Notice) news { return news{birth: -1, death: &n} })
	}
	if other := c.member(); c.w.Happens(3000) && other.ID() != 0 {
		process.Link(m, other, pick(c.w, false, true))
	}
}

func (c *crowd) bury(p *process.Self[news], n process.Notice) {
	if c.told[n.Of]++; c.told[n.Of] == 2 {
		for i, m := range c.members {
			if m == n.Of {
				c.bear(p, i)
			}
		}
	}
}

func (c *crowd) member() process.Ref[coin] { return c.members[c.w.Rand().IntN(len(c.members))] }

// coin goes from member to member.
type coin struct {
	hops  int
	query process.Reply[int] // it is only a question
	asks  bool
}

// member passes on coins.
type member struct {
	c       *crowd
	running bool
	closed  bool
	away    int // coins that are to come back
}

func (m *member) Act(p *process.Self[coin]) act.Directive {
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
			k.query.Send(p, k.hops)
			continue
		}
		if m.dies(p) {
			m.c.lost++
			return p.Fail(errors.New("a bad day"))
		}
		m.pass(p, k)
	}
}

// Close counts what is on its way to the dead.
func (m *member) Close() error {
	if m.closed {
		m.c.w.Errorf("a member was closed twice")
	}
	m.closed = true
	m.c.lost += m.away
	return nil
}

func (m *member) dies(p *process.Self[coin]) bool {
	w := m.c.w
	switch {
	case w.Happens(m.c.deadly):
		return true
	case w.Happens(m.c.deadly):
		m.c.member().Kill()
	case w.Happens(m.c.deadly):
		m.c.lost++
		panic("a bug")
	}
	return false
}

// pass lets k go on: to another member, or to this one, later.
func (m *member) pass(p *process.Self[coin], k coin) {
	c, w := m.c, m.c.w
	c.hops++
	if err := c.ledger.Send(p, 1); err != nil && !c.ordered {
		w.Errorf("the ledger: %v", err)
	}
	if k.hops--; k.hops <= 0 {
		c.arrived++
		return
	}
	back := func() coin { m.away--; return k }
	m.away++
	switch w.Rand().IntN(12) {
	case 0:
		process.Do(p, &listener.Sleep{For: c.while()}, func(error) coin { return back() })
	case 1:
		process.Offload(p, func() (int, error) { return 1, nil }, func(int, error) coin { return back() })
	case 2:
		f := future.New[int](p.Scheduler())
		process.Await(p, f, func(int, error) coin { return back() })
		w.At(w.Now()+c.while(), func() { _ = f.Resolve(1) })
	case 3:
		c.queries++
		ask := func(r process.Reply[int]) coin { return coin{hops: 7, asks: true, query: r} }
		process.Request(p, c.member(), ask, c.while(), func(n int, err error) coin {
			if err == nil && n != 7 {
				w.Errorf("the answer is %d", n)
			}
			return back()
		})
	case 4:
		x := p.After(c.while(), k)
		m.away-- // it comes without being asked
		if w.Happens(5000) && x.Cancel() {
			_ = p.Ref().Send(p, k)
		}
	default:
		m.away--
		_ = c.member().Send(p, k)
	}
}

func (c *crowd) while() time.Duration {
	return time.Duration(c.w.Rand().Int64N(int64(pick(c.w, time.Millisecond, time.Second))))
}

// audit looks at the crowd long after the last coin must have arrived.
func (c *crowd) audit() {
	n := c.sys.Stats()
	if c.ordered {
		return
	}
	unknown := c.begun - c.arrived - c.lost // dropped as messages, among other messages; timers of the dead
	if n.Ended == 0 && unknown != 0 {
		c.w.Errorf("of %d coins %d have arrived, and nobody has died", c.begun, c.arrived)
	}
	if unknown < 0 {
		c.w.Errorf("of %d coins %d have arrived and %d were lost", c.begun, c.arrived, c.lost)
	}
	if c.booked != c.hops {
		c.w.Errorf("%d of %d hops are in the ledger", c.booked, c.hops)
	}
	if dead := c.births - len(c.members); dead != len(c.told) {
		c.w.Errorf("%d members have died, and %d are known of", dead, len(c.told))
	}
	for of, times := range c.told {
		if times != 2 {
			c.w.Errorf("%v has died %d times, of 2", of, times)
		}
	}
	if alive := int64(len(c.members) + 3); n.Alive != alive {
		c.w.Errorf("%d are alive, of %d", n.Alive, alive)
	}
}

// deposit is what a visitor brings.
type deposit struct {
	number int
	reply  process.Reply[int]
}

func (c *crowd) book(p *process.Self[deposit], d deposit) { d.reply.Send(p, d.number+1) }

// session answers each number with the next one, which it asks for.
func (c *crowd) session(k *listener.Conn) act.Action {
	s := &session{c: c, k: k}
	return s
}

type session struct {
	c   *crowd
	k   *listener.Conn
	ask *process.Ask[deposit, int]
}

func (s *session) Act(t *act.Task) act.Directive {
	if s.ask == nil {
		in, err := s.k.Peek(1)
		if err != nil {
			return listener.Next(t, err)
		}
		number := int(in[0])
		s.k.Discard(1)
		s.ask = &process.Ask[deposit, int]{To: s.c.clerk, Within: time.Hour, Message: func(r process.Reply[int]) deposit {
			return deposit{number, r}
		}}
	}
	if d := s.ask.Act(t); d != act.Done {
		return d
	}
	_, err := s.k.Write([]byte{byte(s.ask.Value)})
	s.ask = nil
	return listener.Next(t, err)
}

// visitor sends numbers, and wants the next ones.
func (c *crowd) visitor(i int) sim.Script {
	return func(k *sim.Client) error {
		in := bufio.NewReader(k)
		for n := range k.Rand().IntN(60) {
			if _, err := k.Write([]byte{byte(n)}); err != nil {
				return err
			}
			got, err := in.ReadByte()
			if err != nil {
				return err
			}
			if got != byte(n+1) {
				return fmt.Errorf("visitor %d: %d is followed by %d", i, n, got)
			}
			if k.Rand().IntN(4) == 0 {
				k.Sleep(c.while())
			}
		}
		return nil
	}
}
