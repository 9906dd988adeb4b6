// Package worlds_test has the simulated worlds of package nethttp: clients and handlers of which each knows what the other
// one must see. Their network, clock, faults and order come from one seed. Handlers are coroutines on the world's thread.
//
//	plan_test.go     what a client asks, and what the handler does for it
//	handler_test.go  the handler
//	client_test.go   how a client behaves, and what it may read
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
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 40, 5, 2000) }

// TestWorldHandlers runs clients against an Adapter. Without resets, no call of a handler may fail whose client is there. With
// them, clients still know what they may read.
func TestWorldHandlers(t *testing.T) {
	gentle := sim.Anything()
	gentle.Reset, gentle.Aborted, gentle.NoMemory, gentle.NoFiles = 0, 0, 0, 0
	gentle.Refused, gentle.Unreachable, gentle.TimedOut = 0, 0, 0
	const often = 65536 / 10
	gentle.ShortRead, gentle.ShortWrite, gentle.FalseEmpty, gentle.FalseFull = often, often, often, often
	var seen counts
	t.Run("gentle", func(t *testing.T) { handlers(t, sim.Options{Faults: gentle, Panics: true}, &seen) })
	t.Run("rough", func(t *testing.T) { handlers(t, sim.Options{Faults: sim.Anything(), Panics: true}, &seen) })
	t.Log(seen)
}

// TestSameSeedGivesSameHistory has each world run twice, also if the collector empties pools.
func TestSameSeedGivesSameHistory(t *testing.T) {
	t.Setenv("SIM_SEED", "")
	t.Setenv("SIM_FROM", "")
	t.Setenv("SIM_SEEDS", "1")
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	for seed := range uint64(10) {
		handlers(t, sim.Options{Seed: seed, Faults: sim.Anything(), Panics: true}, &counts{})
	}
}

// counts counts what has happened. A scenario in which nothing happens finds nothing.
type counts struct {
	requests, answers, cut, refused, interim, trailers, bodies, unread, tunnels, ends, late, deaf int
}

func (n counts) String() string {
	return fmt.Sprintf("%d requests: %d answers read whole, %d refused, %d connections cut; %d bodies read, %d given up; %d interim "+
		"answers, %d with trailers, %d tunnels; %d ends of a context awaited; %d handlers have outlived their task; "+
		"%d clients that do not read were given up",
		n.requests, n.answers, n.refused, n.cut, n.bodies, n.unread, n.interim, n.trailers, n.tunnels, n.ends, n.late, n.deaf)
}

// server is the server.
type server struct {
	w       *sim.World
	seen    *counts
	gentle  bool // connections last
	inline  bool
	timed   bool // bodies that stop are given up, and clients that do not read
	bound   int  // Adapter.Most
	running int  // handlers that were accepted and have not returned
	clients []*client
	adapter nethttp.Adapter
	ordered bool
	given   time.Duration // when
	terms   shutdown.Policy
	program *sim.Server
}

const address = "10.0.0.1:80"

func handlers(t *testing.T, o sim.Options, seen *counts) {
	var all []*server
	sim.TestWith(t, o, func(w *sim.World) {
		h := &server{w: w, seen: seen, gentle: o.Faults.Reset == 0, inline: w.Rand().IntN(4) == 0, timed: w.Rand().IntN(3) == 0,
			bound: pick(w, 0, 0, 0, 1, 4)}
		h.open(t)
		all = append(all, h)
	})
	for i, h := range all {
		require.True(t, h.counted(), "world %d: %v", i, h.program.Err())
	}
}

func (h *server) open(t *testing.T) {
	w := h.w
	h.adapter = nethttp.Adapter{Handler: h, Most: h.bound, Inline: h.inline}
	times := httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}
	if h.timed {
		times.Body, times.Write = 5*time.Second, 30*time.Second
	}
	web := &httpd.Server{Handler: h.serve, Timeouts: times}
	high := pick(w, 0, 1000, 20_000)
	limits := listener.Limits{Read: pick(w, 0, 1000, 5000), High: high, Low: high / pick(w, 2, 10), Linger: time.Hour}
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
	for n := range pick(w, 4, 8, 16) {
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
	at := time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 50*time.Millisecond, time.Second, 3*time.Second))))
	w.At(at, func() {
		h.ordered, h.given, h.terms = true, w.Now(), terms.Resolved()
		h.program.Shutdown(shutdown.Now{Terms: terms})
	})
}

// mayCut reports whether an order now lets the server cut connections, and leave handlers behind.
func (h *server) mayCut() bool {
	switch {
	case !h.ordered, h.terms.Kind == shutdown.Endless:
		return false
	case h.terms.Kind == shutdown.Bounded && h.terms.Turns == 0:
		return h.w.Now() >= h.given+h.terms.Time
	}
	return true
}

// counted reports whether handlers that were left behind by an order are counted in the Cut.
func (h *server) counted() bool {
	for _, c := range h.clients {
		for _, q := range c.plan {
			if q.outlived && h.gentle {
				return tasks(h.program.Err()) > 0
			}
		}
	}
	return true
}

// tasks returns how many tasks were cut.
func tasks(err error) (n int) {
	if all, is := err.(interface{ Unwrap() []error }); is { // of several schedulers
		for _, err := range all.Unwrap() {
			n += tasks(err)
		}
		return n
	}
	if cut, is := err.(*shutdown.Cut); is {
		n = cut.Tasks
	}
	return n
}
