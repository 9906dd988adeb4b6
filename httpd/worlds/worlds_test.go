// Package worlds_test has the simulated worlds of packages httpd and nethttp: clients and handlers of which each knows what
// the other one must see. Their network, clock, faults and order come from one seed.
//
//	plan_test.go     what a client asks, and what the handler does for it
//	client_test.go   what a client may read
//	streams_test.go  likewise over HTTP/2, with its streams and windows
//	frames_test.go   the syntax that these clients know
//	handler_test.go  the steps of a handler
//	action_test.go   handlers of httpd, whose actions are coroutines
//	adapter_test.go  handlers of net/http, on the world's thread
package worlds_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tlstest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 20, 2000) }

// kind is that of the handlers of a world.
type kind int

const (
	action  kind = iota // of httpd
	adapter             // of nethttp
	inline              // likewise, called on the scheduler's thread
)

// TestWorldHTTP runs clients against handlers of httpd. Without resets no connection may end without a reason. With them,
// clients still know what they may read.
func TestWorldHTTP(t *testing.T) { worlds(t, false, action) }

// TestWorldHTTP2 is TestWorldHTTP over HTTP/2. No byte of a window is lost, and streams of an urgency take turns.
func TestWorldHTTP2(t *testing.T) { worlds(t, true, action) }

// TestWorldHandlers runs them against handlers of net/http. Without resets, no call of a handler may fail whose client is there.
func TestWorldHandlers(t *testing.T) { worlds(t, false, adapter, adapter, adapter, inline) }

// TestWorldHandlers2 is TestWorldHandlers over HTTP/2.
func TestWorldHandlers2(t *testing.T) { worlds(t, true, adapter, adapter, adapter, inline) }

func worlds(t *testing.T, v2 bool, kinds ...kind) {
	path := filepath.Join(t.TempDir(), "noise")
	require.NoError(t, os.WriteFile(path, party.Noise(), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	var seen counts
	for name, f := range map[string]sim.Faults{"gentle": party.Gentle(), "rough": sim.Anything()} {
		t.Run(name, func(t *testing.T) {
			var all []*server
			sim.TestWith(t, sim.Options{Faults: f, Panics: true}, func(w *sim.World) {
				h := &server{w: w, v2: v2, seen: &seen, file: file, gentle: name == "gentle", kind: party.Pick(w, kinds...), timed: w.Rand().IntN(3) == 0,
					bound: party.Pick(w, 0, 0, 0, 1, 4)}
				h.open(t)
				all = append(all, h)
			})
			for i, h := range all {
				require.True(t, h.counted(), "world %d: %v", i, h.program.Err())
			}
		})
	}
	t.Log(seen)
}

// counts counts what has happened. A scenario in which nothing happens finds nothing.
type counts struct {
	requests, answers, cut, refused, interim, trailers, bodies, unread, tunnels, ends, late, resets int
}

func (n counts) String() string {
	return fmt.Sprintf("%d requests: %d answers read whole, %d refused, %d connections cut; %d bodies read, %d given up; %d interim "+
		"answers, %d with trailers, %d tunnels; %d ends of a context awaited; %d handlers have outlived their task; %d streams are reset",
		n.requests, n.answers, n.refused, n.cut, n.bodies, n.unread, n.interim, n.trailers, n.tunnels, n.ends, n.late, n.resets)
}

// server is the server.
type server struct {
	w       *sim.World
	seen    *counts
	file    *os.File // of Noise
	kind    kind
	v2      bool        // clients speak HTTP/2
	most    int         // streams of a connection
	tls     *tls.Config // of the clients; nil: they do not encrypt
	gentle  bool        // connections last
	timed   bool        // bodies that stop are given up, and clients that do not read
	hasty   bool        // the server does not wait for long until its last answer is read
	high    int
	bound   int // Adapter.Most
	running int // handlers that were accepted and have not returned
	clients []*client
	present *connection // the one that has its turn
	adapter nethttp.Adapter
	order   *party.Order
	program *sim.Server
}

const address = "10.0.0.1:80"

func (h *server) open(t *testing.T) {
	w := h.w
	h.adapter = nethttp.Adapter{Handler: h, Most: h.bound, Inline: h.kind == inline}
	times := httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}
	if h.timed {
		times.Body, times.Write = 5*time.Second, 30*time.Second
		if h.kind == action {
			times.Head = 5 * time.Second
		}
	}
	web := &httpd.Server{Handler: h.serve, Timeouts: times, OnResponse: h.answered}
	if h.v2 {
		web.MaxStreams = party.Pick(w, 0, 0, 1, 2, 5)
		h.most = cmp.Or(web.MaxStreams, 128)
	}
	limits := party.Limits(w)
	if h.high = limits.High; w.Rand().IntN(4) == 0 {
		h.hasty, limits.Linger = true, 5*time.Second
	}
	tcp := &service.Listener{Address: address, Limits: limits, Handler: func(c *listener.Conn) act.Action {
		return &connection{Child: act.Child{Action: web.Serve(c)}, server: h, c: c}
	}}
	if h.v2 && w.Rand().IntN(4) == 0 {
		tcp.Filters = h.encrypt(t)
	}
	var err error
	h.program, err = w.Server("web", party.Config(w), append(party.Engine(w), tcp.Setup)...)
	require.NoError(t, err)
	many := 4
	if h.v2 { // they ask more
		many = 2
	}
	for n := range many * party.Pick(w, 1, 2, 4) {
		c := &client{server: h, n: n}
		h.clients = append(h.clients, c)
		if n == 0 || w.Rand().IntN(2) == 0 {
			w.Client(address, c.run)
		} else {
			w.At(party.Below(w.Rand(), time.Second), func() { w.Client(address, c.run) })
		}
	}
	h.order = party.MayEnd(w, h.program, time.Millisecond, 50*time.Millisecond, time.Second, 3*time.Second)
}

// encrypt has clients and the server speak TLS.
func (h *server) encrypt(t *testing.T) []listener.Filter {
	identity := tlstest.Certificate(t)
	cryptotest.SetGlobalRandom(t, h.w.Rand().Uint64())
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	now := func() time.Time { return tlstest.Birth.Add(h.w.Now()) }
	h.tls = &tls.Config{Time: now, RootCAs: roots, ServerName: "world", NextProtos: []string{"h2"}}
	return []listener.Filter{secure.Server(&tls.Config{Time: now, Certificates: []tls.Certificate{identity},
		NextProtos: []string{"h2", "http/1.1"}}, &secure.Handshakes{})}
}

func from[T any](r *rand.Rand, values ...T) T { return party.From(r, values...) }

// counted reports whether handlers that were left behind by a shutdown are counted in the Cut.
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
