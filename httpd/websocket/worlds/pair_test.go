package worlds_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldPairs has the connections of a Client and a Server talk, each with the other, in two programs of one world. What one
// has sent the other gets, whole and in order; the close frame comes behind all of that, and says why. Without resets every
// connection comes to its end.
func TestWorldPairs(t *testing.T) {
	var seen pairCounts
	t.Run("gentle", func(t *testing.T) { pairs(t, sim.Options{Faults: gentle()}, &seen) })
	t.Run("rough", func(t *testing.T) { pairs(t, sim.Options{Faults: sim.Anything()}, &seen) })
	t.Logf("%+v", seen)
}

// pairCounts counts what has happened.
type pairCounts struct{ connections, refused, messages, pieces, notices, closed, going, broken int }

// pairing is a world of pairs.
type pairing struct {
	w       *sim.World
	seen    *pairCounts
	gentle  bool
	ordered bool
	parties [][2]*party
}

// party is one side of a connection. It is the action of its handler.
type party struct {
	*pairing
	n     int
	side  int // 0: the client's
	conn  *websocket.Conn
	dice  *rand.Rand
	own   []message
	pace  time.Duration
	leads bool // it ends the connection when it has sent everything
	how   ending

	timer   act.Timer
	due     time.Duration
	offset  int
	piecing bool
	sent    []message
	got     int
	closes  *status
	over    bool
	ordered bool // an order has come
}

func pairs(t *testing.T, o sim.Options, seen *pairCounts) {
	var last *pairing
	sim.TestWith(t, o, func(w *sim.World) {
		last.check(t)
		cryptotest.SetGlobalRandom(t, w.Rand().Uint64()) // for the masks
		last = &pairing{w: w, seen: seen, gentle: o.Faults.Reset == 0}
		last.open(t)
	})
	last.check(t)
}

// check looks at what a world has left.
func (h *pairing) check(t *testing.T) {
	if h == nil {
		return
	}
	for _, pair := range h.parties {
		for _, p := range pair {
			require.True(t, p.conn == nil || p.over, "an action has neither finished nor been closed")
			require.True(t, p.conn != nil || !h.gentle || h.ordered, "a connection was not made")
		}
	}
}

func (h *pairing) open(t *testing.T) {
	w := h.w
	o := [2]websocket.Options{}
	for side := range o {
		o[side].Timeouts = pick(w, websocket.Timeouts{Ping: -1, Pong: -1, Close: -1}, websocket.Timeouts{Ping: time.Second, Pong: 10 * time.Second, Close: time.Minute})
		o[side].Compression = websocket.Compression{On: pick(w, false, true, true), Takeover: pick(w, false, true), Min: pick(w, 0, 1)}
		o[side].Backlog = pick(w, 1, 64)
	}
	limits := func() listener.Limits {
		high := pick(w, 0, 300, 1000, 20_000)
		return listener.Limits{Read: pick(w, 0, 1000, 5000), High: high, Low: high / pick(w, 2, 10), Linger: time.Hour}
	}
	for n := range pick(w, 1, 4, 8) {
		pair := [2]*party{}
		leads := w.Rand().IntN(2)
		for side := range pair {
			pair[side] = &party{pairing: h, n: n, side: side, leads: side == leads, dice: rand.New(rand.NewPCG(w.Rand().Uint64(), 0))}
			pair[side].draw()
		}
		h.parties = append(h.parties, pair)
	}
	v := &websocket.Server{Options: o[1], Handler: func(c *websocket.Conn, r *httpd.Request) act.Action {
		var n int
		if _, err := fmt.Sscanf(string(r.Path()), "/%d", &n); err != nil || n >= len(h.parties) || h.parties[n][1].conn != nil {
			w.Errorf("a connection that was never made, or twice: %q", r.Path())
			return nil
		}
		return h.parties[n][1].begin(c)
	}}
	web := &httpd.Server{Handler: v.Serve, Timeouts: httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}}
	tcp := &service.TCP{Address: address, Handler: web.Serve, Limits: limits()}
	config := func() act.Config {
		return act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 256)}
	}
	engine := func() setUps { return pick(w, nil, nil, setUps{sim.Completions}) }
	programs := [2]*sim.Server{}
	var err error
	programs[1], err = w.Server("web", config(), append(engine(), tcp.Setup)...)
	require.NoError(t, err)
	spawned := 0
	programs[0], err = w.Server("clients", config(), append(engine(), func(s *act.Scheduler) error {
		for ; spawned < len(h.parties) && (s.Index() > 0 || w.Rand().IntN(2) == 0 || spawned == 0); spawned++ {
			s.Spawn(h.dial(spawned, o[0], limits()))
		}
		return nil
	})...)
	require.NoError(t, err)
	h.parties = h.parties[:spawned]
	w.At(40*time.Second, func() {}) // so long the programs go on
	if w.Rand().IntN(2) == 0 {
		which := pick(w, programs[0], programs[1])
		w.At(time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 100*time.Millisecond, 3*time.Second)))), func() {
			h.ordered = true
			which.Shutdown(shutdown.Now{Terms: pick(w, shutdown.Unbounded, shutdown.Policy{Time: 20 * time.Second, Drop: true})})
		})
	}
}

// dial returns the action of a client, which may fail where connections do.
func (h *pairing) dial(n int, o websocket.Options, limits listener.Limits) act.Action {
	v := &websocket.Client{URL: fmt.Sprintf("ws://%s/%d", address, n), Limits: limits, Options: o, Handler: func(c *websocket.Conn) act.Action {
		return h.parties[n][0].begin(c)
	}}
	return &dialling{Child: act.Child{Action: v.Dial()}, pairing: h}
}

// dialling looks at the error of a client.
type dialling struct {
	act.Child
	*pairing
}

func (x *dialling) Act(t *act.Task) act.Directive {
	d := x.Child.Act(t)
	if d != act.Failed {
		return d
	}
	if e := (*websocket.DialError)(nil); errors.As(t.Err(), &e) {
		if x.seen.refused++; x.gentle && !x.ordered {
			x.w.Errorf("%v", e)
		}
	} else if t.Err() != errOnPurpose && x.gentle {
		x.w.Errorf("a client fails: %v", t.Err())
	}
	return act.Done
}

// draw draws what a party says.
func (p *party) draw() {
	r := p.dice
	for range from(r, 0, 1, 5, 30) {
		p.own = append(p.own, content(r, from[byte](r, text, binry), r.IntN(1<<r.IntN(17))))
	}
	p.pace, p.how = time.Duration(r.Int64N(int64(from(r, time.Microsecond, time.Millisecond, time.Second)))), from(r, done, fails, closing1, closing2)
}

func (p *party) begin(c *websocket.Conn) act.Action {
	p.conn = c
	if p.side == 0 {
		p.seen.connections++
	}
	return p
}

func (p *party) peer() *party { return p.parties[p.n][1-p.side] }

func (p *party) String() string {
	return fmt.Sprintf("the party %d/%d, which has sent %d, with %d left, got %d, closed %v, leads %v, ends by %v, ordered %v, over %v",
		p.n, p.side, len(p.sent), len(p.own), p.got, p.closes, p.leads, p.how, p.ordered, p.over)
}

// Act is a turn.
func (p *party) Act(t *act.Task) act.Directive {
	d := p.turn(t)
	if d == act.Done || d == act.Failed {
		_ = p.Close()
	}
	return d
}

// Close is the end.
func (p *party) Close() error {
	p.timer.Stop()
	p.over = true
	return nil
}

// Stop hears of an order.
func (p *party) Stop(*act.Task, shutdown.Order) { p.ordered = true }

func (p *party) turn(t *act.Task) act.Directive {
	for len(p.own) > 0 && t.Scheduler().Now() >= p.due {
		if err := p.say(); err != nil {
			return p.next(t, err)
		}
		p.due = t.Scheduler().Now() + p.pace
	}
	if len(p.own) > 0 {
		t.WakeAt(&p.timer, p.due)
	} else if p.leads && p.closes == nil {
		if d, over := p.end(t); over {
			return d
		}
	}
	for range 10 {
		m, err := p.conn.Receive()
		if err != nil {
			return p.next(t, err)
		}
		sent := p.peer().sent
		if p.got >= len(sent) || byte(m.Type) != sent[p.got].opcode || !bytes.Equal(m.Data, sent[p.got].data) {
			p.w.Errorf("%d bytes of type %d are no message that was sent\n%v\n%v", len(m.Data), m.Type, p, p.peer())
			return act.Done
		}
		p.got++
		p.seen.messages++
	}
	return act.Yield
}

// end ends the connection.
func (p *party) end(t *act.Task) (d act.Directive, over bool) {
	switch p.how {
	case done:
		p.closes = &status{1000, ""}
		return act.Done, true
	case fails:
		p.closes = &status{1011, ""}
		return t.Fail(errOnPurpose), true
	}
	p.closes = &status{4000, "led"}
	p.conn.Close(4000, "led")
	t.Waker()
	return act.Wait, p.how == closing2
}

// say sends the next message of own, or a piece of it.
func (p *party) say() error {
	m := p.own[0]
	over := true
	switch kind := p.dice.IntN(4); {
	case !p.piecing && kind == 0:
		if err := p.conn.Push(websocket.Prepare(websocket.Type(m.opcode), m.data)); err != nil {
			return err
		}
		p.seen.notices++
	case !p.piecing && kind < 3:
		if err := p.conn.Send(websocket.Type(m.opcode), m.data); err != nil {
			return err
		}
	default:
		n := min(len(m.data)-p.offset, len(m.data)/10+p.dice.IntN(1000))
		over = p.offset+n == len(m.data)
		if err := p.conn.SendPiece(websocket.Type(m.opcode), m.data[p.offset:p.offset+n], over); err != nil {
			return err
		}
		p.seen.pieces++
		p.offset += n
	}
	if p.piecing = !over; over {
		p.own, p.offset, p.sent = p.own[1:], 0, append(p.sent, m)
	}
	return nil
}

// next ends a turn with an error, and checks one with which the connection ends.
func (p *party) next(t *act.Task, err error) act.Directive {
	q, e := p.peer(), (*websocket.CloseError)(nil)
	switch _, blocked := err.(act.Blocked); {
	case blocked:
	case errors.As(err, &e) && e.Code != 1006:
		p.seen.closed++
		if e.Code == 1001 {
			p.seen.going++
		}
		mine := p.closes != nil || p.ordered // the answer has the same code
		if !(q.closes != nil && e.Code == q.closes.code && e.Reason == q.closes.reason || e.Code == 1001 && (q.ordered || p.ordered) ||
			mine && p.closes != nil && e.Code == p.closes.code) {
			p.w.Errorf("a party is told %v\n%v\n%v", e, p, q)
		}
		if p.got != len(q.sent) && !mine {
			p.w.Errorf("a party is told %v, and has not got everything\n%v\n%v", e, p, q)
		}
	case err == net.ErrClosed && (p.closes != nil || p.ordered || q.closes != nil || q.ordered):
	default:
		if p.seen.broken++; p.gentle {
			p.w.Errorf("a connection ends by %v\n%v\n%v", err, p, q)
		}
	}
	return p.conn.Next(t, err)
}
