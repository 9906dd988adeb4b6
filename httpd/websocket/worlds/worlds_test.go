// Package worlds_test has the simulated worlds of package websocket: clients and handlers of which each knows what the other
// one must see. Their network, clock, faults and order come from one seed.
//
//	plan_test.go     what a client says, compresses and inflates
//	client_test.go   frames, how a client behaves, and what it may read
//	handler_test.go  the handlers
//	dialled_test.go  clients of the package's own
package worlds_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 60, 2000) }

// TestWorldServer runs clients against a Server. Without resets and delays, no connection may end without a reason, and time-outs
// come when they are due. With them, clients still know what they may read.
func TestWorldServer(t *testing.T) {
	var seen counts
	t.Run("gentle", func(t *testing.T) { servers(t, true, &seen, false) })
	t.Run("rough", func(t *testing.T) { servers(t, false, &seen, false) })
	party.Happened(t, "has a connection ended in order", seen.orderly)
	party.Happened(t, "was a message received", seen.received)
	party.Happened(t, "was a message sent", seen.messages)
}

// TestWorldCompression is TestWorldServer with messages that are compressed, some of them, on some connections.
func TestWorldCompression(t *testing.T) {
	var seen counts
	servers(t, false, &seen, true)
	party.Happened(t, "was a message sent compressed", seen.squeezed)
	party.Happened(t, "was a compressed message received", seen.inflated)
}

// counts counts what has happened. A scenario in which nothing happens finds nothing.
type counts struct{ orderly, messages, received, squeezed, inflated int }

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
	backlog  int  // of notices
	drops    bool // notices may be dropped
	compress bool // connections may be compressed
	options  websocket.Options
	running  int // actions that have begun and not ended
	clients  []*client
	order    *party.Order
	program  *sim.Server
}

const (
	address = "10.0.0.1:80"
	// The time-outs of a server that has any.
	ping5, pong3, close2 = 5 * time.Second, 3 * time.Second, 2 * time.Second
)

// options returns the options of a world in which connections last, or of one in which anything happens.
func options(gentle bool) sim.Options {
	if gentle {
		return sim.Options{Faults: party.Gentle(), Panics: true}
	}
	return sim.Options{Faults: sim.Anything(), Panics: true}
}

func servers(t *testing.T, gentle bool, seen *counts, compress bool) {
	var last *server
	defer func() {
		if t.Failed() && last != nil {
			last.describe(t)
		}
	}()
	sim.TestWith(t, options(gentle), func(w *sim.World) {
		last.check(t)
		last = &server{w: w, seen: seen, gentle: gentle, timed: w.Rand().IntN(3) > 0, compress: compress}
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
		if c.Client.Client != nil && !(c.Over && c.spoken) {
			t.Logf("%v: %s", c.Client, c.describe())
		}
	}
}

func (h *server) open(t *testing.T) {
	w := h.w
	h.limit = pick(w, 1<<20, 1000, 1000, 70_000)
	o := websocket.Options{MaxMessage: int64(h.limit), Ping: -1, Pong: -1, CloseTimeout: -1}
	if h.timed {
		o.Ping, o.Pong, o.CloseTimeout = ping5, pong3, close2
	}
	v := &websocket.Server{Handler: h.handle, Options: o}
	if h.limit == 1<<20 {
		v.MaxMessage = 0
	}
	if h.compress {
		if v.Takeover = w.Rand().IntN(2) == 0; w.Rand().IntN(8) > 0 {
			v.Compress = pick(w, 256, 1, 1000)
		}
		h.options = v.Options
	}
	h.backlog, h.drops = pick(w, 64, 1, 3, 10, 0), pick(w, true, false)
	if v.Backlog = h.backlog; h.backlog == 0 {
		v.Backlog = -1
	}
	for range 40 {
		m := content(w.Rand(), pick[byte](w, text, binry), w.Rand().IntN(1<<w.Rand().IntN(14)))
		h.notices = append(h.notices, notice{m, websocket.Prepare(websocket.Type(m.opcode), m.data)})
	}
	web := &httpd.Server{Handler: v.Serve, Timeouts: httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}}
	limits := party.Limits(w)
	h.high = pick(w, limits.High, 300)
	limits.High, limits.Low = h.high, min(limits.Low, h.high/2)
	tcp := &service.Listener{Address: address, Handler: web.Serve, Limits: limits}
	var err error
	h.program, err = w.Server("web", party.Config(w), append(party.Engine(w), tcp.Setup)...)
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
	h.order = party.MayEnd(w, h.program, time.Millisecond, 50*time.Millisecond, time.Second, 3*time.Second, 10*time.Second)
}

// pick draws one of some values.
func pick[T any](w *sim.World, values ...T) T { return party.Pick(w, values...) }
