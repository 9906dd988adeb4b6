// Package worlds_test has the simulated worlds of package websocket: clients and handlers of which each knows what the other
// one must see. Their network, clock, faults and order come from one seed.
//
//	wire_test.go     frames, by code that has nothing in common with the package's
//	plan_test.go     what a client says
//	client_test.go   how a client behaves, and what it may read
//	handler_test.go  the handlers
//	pair_test.go     a Client and a Server, which talk to each other
//	dialled_test.go  clients of the package's own
//	compression_test.go  what a client compresses, and inflates
package worlds_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 60, 4, 2000) }

// TestWorldServer runs clients against a Server. Without resets and delays, no connection may end without a reason, and time-outs
// come when they are due. With them, clients still know what they may read.
func TestWorldServer(t *testing.T) {
	var seen counts
	t.Run("gentle", func(t *testing.T) { servers(t, sim.Options{Faults: gentle(), Panics: true}, &seen, false) })
	t.Run("rough", func(t *testing.T) { servers(t, sim.Options{Faults: sim.Anything(), Panics: true}, &seen, false) })
	t.Log(seen)
}

// TestWorldCompression is TestWorldServer with messages that are compressed, some of them, on some connections.
func TestWorldCompression(t *testing.T) {
	var seen counts
	servers(t, sim.Options{Faults: sim.Anything(), Panics: true}, &seen, true)
	t.Logf("%d messages were sent compressed, and %d received", seen.squeezed, seen.inflated)
	t.Log(seen)
}

// gentle are the faults of a network in which connections last, and what is sent arrives soon.
func gentle() sim.Faults {
	f := sim.Anything()
	f.Reset, f.Aborted, f.NoMemory, f.NoFiles = 0, 0, 0, 0
	f.Refused, f.Unreachable, f.TimedOut, f.Slow, f.Clog = 0, 0, 0, 0, 0
	const often = 65536 / 10
	f.ShortRead, f.ShortWrite, f.FalseEmpty, f.FalseFull = often, often, often, often
	return f
}

// TestSameSeedGivesSameHistory has each world run twice, also if the collector empties pools.
func TestSameSeedGivesSameHistory(t *testing.T) {
	t.Setenv("SIM_SEED", "")
	t.Setenv("SIM_FROM", "")
	t.Setenv("SIM_SEEDS", "1")
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	for seed := range uint64(10) {
		servers(t, sim.Options{Seed: seed, Faults: sim.Anything(), Panics: true}, &counts{}, seed%2 == 1)
	}
}

// counts counts what has happened. A scenario in which nothing happens finds nothing.
type counts struct {
	connections, ended, orderly, cut, closed, going, silent         int
	messages, sent, received, pieces, pushed, blocked, pongs, asked int
	awaited, noticed, dropped, naps, said                           int
	squeezed, inflated                                              int
}

func (n counts) String() string {
	return fmt.Sprintf("%d connections, %d ended, %d of them in order, %d cut off; %d close frames, %d of them with 1001; %d messages sent "+
		"%d of them by another task, %d times without room, %d read; %d messages and %d further pieces received; %d pongs, %d awaited; "+
		"%d signs of life asked for, %d in vain; %d notices, %d of them dropped; %d times a handler does not receive for a while; %d pieces sent", n.connections, n.ended, n.orderly, n.cut, n.closed, n.going, n.sent, n.pushed, n.blocked, n.messages,
		n.received, n.pieces, n.pongs, n.awaited, n.asked, n.silent, n.noticed, n.dropped, n.naps, n.said)
}

// notice is a message for all.
type notice struct {
	message
	prepared *websocket.Prepared
}

// server is the server.
type server struct {
	w        *sim.World
	seen     *counts
	gentle   bool // connections last, and what is sent arrives soon
	timed    bool // silent clients are given up, and close frames that are not answered
	limit    int  // MaxMessage
	high     int  // Limits.High
	notices  []notice
	backlog  int // of notices
	overflow websocket.Overflow
	compress bool // connections may be compressed
	options  websocket.Compression
	running  int // actions that have begun and not ended
	clients  []*client
	ordered  bool
	given    time.Duration // when
	terms    shutdown.Policy
	program  *sim.Server
}

const (
	address = "10.0.0.1:80"
	// The time-outs of a server that has any.
	ping5, pong3, close2 = 5 * time.Second, 3 * time.Second, 2 * time.Second
)

func servers(t *testing.T, o sim.Options, seen *counts, compress bool) {
	var last *server
	defer func() {
		if t.Failed() && last != nil {
			last.describe(t)
		}
	}()
	sim.TestWith(t, o, func(w *sim.World) {
		last.check(t)
		last = &server{w: w, seen: seen, gentle: o.Faults.Reset == 0, timed: w.Rand().IntN(3) > 0, compress: compress}
		last.open(t)
	})
	last.check(t)
}

// check looks at what a world has left.
func (h *server) check(t *testing.T) {
	if h != nil {
		require.Zero(t, h.running, "actions have neither finished nor been closed")
	}
}

// describe logs the clients that have not finished.
func (h *server) describe(t *testing.T) {
	for _, c := range h.clients {
		if c.Client != nil && !(c.over && c.spoken) {
			t.Logf("%v: %s", c.Client, c.describe())
		}
	}
}

func (h *server) open(t *testing.T) {
	w := h.w
	h.limit = pick(w, 1<<20, 1000, 1000, 70_000)
	times := websocket.Timeouts{Ping: -1, Pong: -1, Close: -1}
	if h.timed {
		times = websocket.Timeouts{Ping: ping5, Pong: pong3, Close: close2}
	}
	v := &websocket.Server{Handler: h.handle, Options: websocket.Options{MaxMessage: int64(h.limit), Timeouts: times}}
	if h.limit == 1<<20 {
		v.MaxMessage = 0
	}
	if h.compress {
		h.options = websocket.Compression{On: w.Rand().IntN(8) > 0, Takeover: w.Rand().IntN(2) == 0, Min: pick(w, 0, 1, 1000)}
		v.Compression = h.options
	}
	h.backlog, h.overflow = pick(w, 64, 1, 3, 10, 0), pick(w, websocket.Block, websocket.Drop, websocket.Disconnect)
	if v.Backlog, v.Overflow = h.backlog, h.overflow; h.backlog == 0 {
		v.Backlog = -1
	}
	for range 40 {
		m := content(w.Rand(), pick[byte](w, text, binry), w.Rand().IntN(1<<w.Rand().IntN(14)))
		h.notices = append(h.notices, notice{m, websocket.Prepare(websocket.Type(m.opcode), m.data)})
	}
	web := &httpd.Server{Handler: v.Serve, Timeouts: httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}}
	h.high = pick(w, 0, 300, 1000, 20_000)
	limits := listener.Limits{Read: pick(w, 0, 1000, 5000), High: h.high, Low: h.high / pick(w, 2, 10), Linger: time.Hour}
	tcp := &service.TCP{Address: address, Handler: web.Serve, Limits: limits}
	cfg := act.Config{Schedulers: pick(w, 1, 2, 3), TurnsPerPass: pick(w, 0, 1, 8), Inbox: pick(w, 2, 256)}
	cfg.Trace = &act.Trace{Ended: func(_ *act.Task, err error) {
		if p := (*act.Panic)(nil); errors.As(err, &p) && p.Value != errOnPurpose {
			w.Errorf("%v\n%s", p, p.Stack)
		}
	}}
	var err error
	h.program, err = w.Server("web", cfg, append(pick(w, nil, nil, setUps{sim.Completions}), tcp.Setup)...)
	require.NoError(t, err)
	for n := range pick(w, 4, 8) {
		c := &client{server: h, n: n}
		h.clients = append(h.clients, c)
		if n == 0 || w.Rand().IntN(2) == 0 {
			w.Client(address, c.run)
		} else {
			w.At(time.Duration(w.Rand().Int64N(int64(time.Second))), func() { w.Client(address, c.run) })
		}
	}
	if w.Rand().IntN(2) == 0 {
		h.end()
	}
}

type setUps = []func(*act.Scheduler) error

// pick draws one of some values.
func pick[T any](w *sim.World, values ...T) T { return values[w.Rand().IntN(len(values))] }

// end gives the server an order.
func (h *server) end() {
	w := h.w
	bound := 1 + time.Duration(w.Rand().Int64N(int64(time.Second)))
	terms := pick(w, shutdown.Unbounded, shutdown.Unbounded, shutdown.Policy{Kind: shutdown.Halting, Drop: true},
		shutdown.Policy{Time: bound, Drop: true}, shutdown.Policy{Turns: 1 + w.Rand().IntN(5), Time: bound, Drop: true})
	terms.Spread = pick(w, 0, 0, time.Second, 10*time.Second)
	terms.Announce = pick(w, 0, 0, 0, 100*time.Millisecond, 5*time.Second)
	at := time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 50*time.Millisecond, time.Second, 3*time.Second, 10*time.Second))))
	w.At(at, func() {
		h.ordered, h.given, h.terms = true, w.Now(), terms.Resolved()
		h.program.Shutdown(shutdown.Now{Terms: terms})
	})
}

// mayCut reports whether an order now lets the server cut connections.
func (h *server) mayCut() bool {
	switch {
	case !h.ordered, h.terms.Kind == shutdown.Endless:
		return false
	case h.terms.Kind == shutdown.Bounded && h.terms.Turns == 0:
		return h.w.Now() >= h.given+h.terms.Time
	}
	return true
}
