package sim_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
	"github.com/daimon-go/daimon/topic"
)

// TestWorldTopics has visitors that follow two rooms and publish in them. They read slowly, break off, come back with the
// Position of the last message that they have got, and come once more while they are still there, which takes over their name.
func TestWorldTopics(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		x := &rooms{w: w, kept: pick(w, 2, 5, 1000), pending: pick(w, 0, 2, 10)}
		x.b = topic.New(topic.Config{Rules: []topic.Rule{{Filter: "r/#", History: x.kept, Age: 1000 * time.Hour}}, Pending: x.pending})
		const at = "10.0.0.1:7014"
		tcp := &service.Listener{Address: at, Handler: x.serve, Limits: listener.Limits{High: 1000, Linger: time.Hour}}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 1, 3)}
		_, err := w.Server("rooms", cfg, append(anyEngine(w), x.b.Setup, tcp.Setup)...)
		require.NoError(t, err)
		for id := range visitors {
			v := &visitor{id: id, visits: 1 + w.Rand().IntN(6), overflow: pick(w, topic.DropOldest, topic.DropNewest, topic.End)}
			v.at[0], v.at[1] = pick(w, topic.Position{}, topic.Earliest), pick(w, topic.Position{}, topic.Earliest)
			var visit sim.Script
			visit = func(c *sim.Client) error {
				again := func() {
					if v.visits > 0 {
						w.Client(at, visit)
					}
				}
				if v.visits--; c.Rand().IntN(4) == 0 {
					again() // at the same time
				}
				x.visit(c, v, false)
				again()
				return nil
			}
			w.Client(at, visit)
			x.left += lastWords
			w.ClientAfterStorm(at, func(c *sim.Client) error { x.visit(c, v, true); return nil })
		}
	})
}

const (
	visitors  = 5
	lastWords = 3 // of each visitor, when the storm is over
)

// rooms is a server with what was published.
type rooms struct {
	w             *sim.World
	b             *topic.Broker
	names         topic.Names[*seat]
	kept, pending int
	said          [2][]string // in each room
	retained      [2]string
	visits        []*visit
	left          int // of all last words
}

// visitor has what a visitor remembers.
type visitor struct {
	id, visits, words int
	overflow          topic.Overflow
	at                [2]topic.Position
}

// visit is a connection of a visitor.
type visit struct {
	*visitor
	begins [2]topic.Position
	last   bool
	gone   bool
}

// visit is the client's part.
func (x *rooms) visit(c *sim.Client, v *visitor, last bool) {
	this := &visit{visitor: v, begins: v.at, last: last}
	defer func() { this.gone = true }()
	x.visits = append(x.visits, this)
	if _, err := c.Write([]byte{byte(len(x.visits) - 1)}); err != nil {
		return
	}
	r := c.Rand()
	words, slow, most := r.IntN(20), r.IntN(3) == 0, r.IntN(60)
	if last {
		words, slow = lastWords, false
	} else {
		_ = c.SetReadDeadline(c.Now().Add(party.Below(r, time.Second)))
	}
	c.Go(func(c *sim.Client) error {
		for range words {
			if _, err := c.Write([]byte("p")); err != nil {
				return nil
			}
			c.Sleep(party.Below(r, 20*time.Millisecond))
		}
		return nil
	})
	at, in := v.at, bufio.NewReader(c)
	for n := 0; last || n < most; n++ {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		var i int
		var is topic.Position
		if _, err := fmt.Sscan(line, &i, &is.Offset, &is.Epoch); err != nil {
			x.w.Errorf("%q: %w", line, err)
			return
		}
		if at[i] = is; is.Offset >= v.at[i].Offset {
			v.at[i] = is
		}
		if last && x.left == 0 && at[0].Offset == uint64(len(x.said[0])) && at[1].Offset == uint64(len(x.said[1])) {
			return
		}
		if slow {
			c.Sleep(party.Below(r, 50*time.Millisecond))
		}
	}
	if last {
		x.w.Errorf("visitor %d has got %v of %d and %d", v.id, at, len(x.said[0]), len(x.said[1]))
	} else if r.IntN(2) == 0 {
		c.Abort()
	}
}

// seat is the server's part.
type seat struct {
	x     *rooms
	c     *listener.Conn
	visit *visit
	claim *topic.Claim[*seat]
	sub   *topic.Subscription
	limit int
	out   []byte

	follows  [2]uint64 // the offset of Followed
	complete [2]bool
	upTo     [2]uint64 // the last message that Follow has to bring
	retained []string  // what Add has to bring
	at       [2]uint64 // the last message
	missed   uint64
	heard    [visitors]int // the last word of each visitor
}

func (x *rooms) serve(c *listener.Conn) act.Action { return &seat{x: x, c: c} }

// Act implements act.Action.
func (s *seat) Act(t *act.Task) act.Directive {
	if s.visit == nil {
		in, err := s.c.Peek(1)
		if err != nil {
			return goneOr(t, err)
		}
		s.visit = s.x.visits[in[0]]
		if s.c.Discard(1); s.visit.gone { // its bytes were late
			return act.Done
		}
		s.claim = s.x.names.TakeOver(t, fmt.Sprint(s.visit.id), s)
	}
	if s.sub == nil {
		if err := s.claim.Acquire(); err != nil {
			if half, broken := s.c.Ended(t); half || broken != nil {
				return act.Done
			}
			return goneOr(t, err)
		}
		s.begin(t)
	}
	if owner, _ := s.x.names.Lookup(fmt.Sprint(s.visit.id)); owner != s {
		s.x.w.Errorf("visitor %d has another seat", s.visit.id)
	}
	for _, err := range []error{s.claim.Lost(), s.hear(), s.say()} {
		wait, ok := err.(act.Blocked)
		if !ok {
			return act.Done
		}
		wait.Arm(t)
	}
	return act.Wait
}

// begin follows the rooms.
func (s *seat) begin(t *act.Task) {
	x, v := s.x, s.visit
	s.limit = pick(x.w, 1, 2, 10)
	if v.last {
		s.limit = 1 << 20
	}
	s.sub = x.b.Subscribe(t, topic.Options{Queue: s.limit, Overflow: v.overflow})
	for i, after := range v.begins {
		last := uint64(len(x.said[i]))
		first := last - min(last, uint64(x.kept))
		s.upTo[i], s.complete[i] = last, after.Offset >= first
		if s.follows[i] = max(after.Offset, first); after == (topic.Position{}) {
			s.follows[i], s.complete[i] = last, true
		}
		if err := s.sub.Follow(room(i), after); err != nil {
			x.w.Errorf("follow: %w", err)
		}
	}
	if err := s.sub.Add("+/+"); err != nil {
		x.w.Errorf("add: %w", err)
	}
	for _, data := range x.retained {
		if data != "" {
			s.retained = append(s.retained, data)
		}
	}
}

func room(i int) string { return fmt.Sprint("r/", i) }

// hear publishes what the visitor says.
func (s *seat) hear() error {
	x, v := s.x, s.visit
	for {
		if _, err := s.c.Peek(1); err != nil {
			return err
		}
		i, retain := x.w.Rand().IntN(2), x.w.Rand().IntN(4) == 0
		data := fmt.Sprintf("%d %d %d", i, v.id, v.words+1)
		if err := x.b.Publish(topic.Publication{Topic: room(i), Data: []byte(data), Retain: retain}); err != nil {
			if x.pending == 0 {
				x.w.Errorf("a publisher waits: %w", err)
			}
			return err
		}
		s.c.Discard(1)
		v.words++
		if x.said[i] = append(x.said[i], data); retain {
			x.retained[i] = data
		}
		if v.last {
			x.left--
		}
	}
}

// say passes on what the subscription has got: no more in a turn than it holds, but for what was brought.
func (s *seat) say() error {
	for live := 0; ; {
		for len(s.out) > 0 {
			n, err := s.c.Write(s.out)
			if s.out = s.out[n:]; err != nil {
				return err
			}
		}
		m, err := s.sub.Take()
		if err != nil {
			return err
		}
		i := int(m.Topic[len(m.Topic)-1] - '0')
		switch {
		case m.Kind == topic.Followed:
			if m.Offset != s.follows[i] || m.Complete != s.complete[i] {
				s.x.w.Errorf("visitor %d comes after %v, and follows from %v, %v", s.visit.id, s.visit.begins[i], m.Position, m.Complete)
			}
		case m.Retained:
			if len(s.retained) == 0 || s.retained[0] != string(m.Data) {
				s.x.w.Errorf("%q is retained, and not %q", m.Data, s.retained)
				return io.EOF
			}
			s.retained = s.retained[1:]
			continue
		default:
			if m.Offset > s.upTo[i] {
				live++
			}
			if s.judge(m, i); live > s.limit {
				s.x.w.Errorf("%d messages were in a queue for %d", live, s.limit)
			}
		}
		s.at[i] = m.Offset
		s.out = fmt.Appendf(s.out, "%d %d %s\n", i, m.Offset, m.Epoch)
	}
}

// judge compares a message with what was said. None is missing, unless it was dropped, and the words of a visitor are in order.
func (s *seat) judge(m *topic.Message, i int) {
	var room, who, word int
	_, err := fmt.Sscan(string(m.Data), &room, &who, &word)
	s.missed += m.Offset - s.at[i] - 1
	known := m.Offset <= uint64(len(s.x.said[i])) && s.x.said[i][m.Offset-1] == string(m.Data)
	if err != nil || !known || s.missed > s.sub.Dropped() {
		s.x.w.Errorf("visitor %d has %q at %v, after %d, and %d are missing: %v", s.visit.id, m.Data, m.Position, s.at[i], s.missed, err)
		return
	}
	if m.Offset > s.upTo[i] {
		if word <= s.heard[who] {
			s.x.w.Errorf("word %d of visitor %d after %d", word, who, s.heard[who])
		}
		s.heard[who] = word
	}
}
