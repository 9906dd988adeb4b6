package worlds_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/coroutine"
	"github.com/daimon-go/daimon/internal/testing/filtertest"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldClients has one server dial another, both with coroutines: what comes back is what was sent, and neither side ever
// tells the other that it has broken the protocol. A shutdown may come to either at any time.
func TestWorldClients(t *testing.T) {
	whole := 0
	t.Run("gentle", func(t *testing.T) { dials(t, true, &whole) })
	t.Run("rough", func(t *testing.T) { dials(t, false, &whole) })
	t.Logf("%d clients got all messages back", whole)
	party.Happened(t, "did a client get all messages back", whole)
}

func dials(t *testing.T, gentle bool, whole *int) {
	sim.TestWith(t, options(gentle), func(w *sim.World) {
		cryptotest.SetGlobalRandom(t, w.Rand().Uint64()) // for masks and keys
		ordered, stay := false, w.Rand().IntN(3) == 0
		pings := []time.Duration{0, 10 * time.Millisecond, time.Second}
		if stay {
			pings = pings[:1] // there would be too many
		}
		options := func() websocket.Options {
			return websocket.Options{
				Compress:     pick(w, 0, 0, 1, 256),
				Takeover:     pick(w, true, false),
				Ping:         pick(w, pings...),
				Pong:         time.Minute,
				Subprotocols: pick(w, nil, []string{"echo"}),
			}
		}
		var filters []listener.Filter // in the place of TLS
		scheme := pick(w, "ws", "wss")
		if scheme == "wss" {
			filters = []listener.Filter{filtertest.Mask(7)}
		}
		sockets := &websocket.Server{Options: options(), Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action {
			return coroutine.New(c, func(c *coroutine.Conn) error {
				for {
					m, err := c.Read()
					if err == nil {
						err = c.Write(m.Type, m.Data)
					}
					if err != nil {
						return kept(w, err)
					}
				}
			})
		}}
		back := &service.Listener{Address: address, Handler: (&httpd.Server{Handler: sockets.Serve}).Serve, Limits: party.Limits(w),
			MaxConns: pick(w, 0, 3), Filters: filters}
		if stay {
			back.MaxConns = 0
		}
		callers := func(s *act.Scheduler) error {
			for range 3 {
				x := &caller{w: w, ordered: &ordered, stays: stay, gentle: gentle, whole: whole,
					messages: w.Rand().IntN(30), largest: 1 + w.Rand().IntN(pick(w, 10, 1000, 30_000))}
				x.Action = (&websocket.Client{URL: scheme + "://" + address, Limits: party.Limits(w), Filters: filters, Options: options(),
					Handler: func(c *websocket.Conn) act.Action {
						return coroutine.New(c, func(co *coroutine.Conn) error { return x.talk(co, c) })
					}}).Dial()
				s.Spawn(x)
			}
			return nil
		}
		cfg := act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 1, 8)}
		b, err := w.Server("back", cfg, back.Setup)
		require.NoError(t, err)
		f, err := w.Server("front", cfg, callers)
		require.NoError(t, err)
		w.At(25*time.Second, func() { ordered = true }) // the world waits for it, and then ends the servers
		if w.Rand().IntN(3) == 0 {
			w.At(party.Below(w.Rand(), pick(w, time.Millisecond, time.Second)), func() {
				ordered = true
				bound := shutdown.Policy{Time: 1 + party.Below(w.Rand(), time.Second), Drop: true}
				which, terms := pick(w, b, f), pick(w, bound, shutdown.Policy{Kind: shutdown.Unbounded})
				which.Shutdown(terms)
				w.At(w.Now()+15*time.Second, func() {
					if gentle && !which.Ended() {
						w.Errorf("an order has not reached all connections")
					}
				})
			})
		}
	})
}

// kept returns the error with which a connection has ended. It must not be that a side has broken the protocol.
func kept(w *sim.World, err error) error {
	var e *websocket.CloseError
	if errors.As(err, &e) && e.Code != 1000 && e.Code != 1001 && e.Code != 1006 {
		w.Errorf("a connection has ended with %v", err)
	}
	return err
}

// caller is a client that sends messages, and wants each back.
type caller struct {
	act.Child
	w                 *sim.World
	ordered           *bool
	gentle            bool // connections last
	stays             bool // until a shutdown ends it
	whole             *int
	messages, largest int
	got               int
}

// Act judges how it has ended.
func (x *caller) Act(t *act.Task) act.Directive {
	d := x.Child.Act(t)
	if !d.Finished() {
		return d
	}
	var refused *websocket.DialError
	switch {
	case d == act.Failed && errors.As(t.Err(), &refused) && refused.Status != 0:
		x.w.Errorf("the server has answered %d", refused.Status)
	case d == act.Done && x.got == x.messages:
		*x.whole++
	case *x.ordered || !x.gentle:
	case d == act.Failed:
		x.w.Errorf("a client: %v", t.Err())
	default:
		x.w.Errorf("a client got %d of %d messages back", x.got, x.messages)
	}
	return act.Done
}

// message returns the one with this number. Texts have characters of several bytes, which fragments and pieces cut.
func (x *caller) message(n int) (websocket.Type, []byte) {
	size := (n*n*37 + n) % x.largest
	if n%3 == 0 {
		p := bytes.Repeat([]byte{byte(n), 0xFF, 'a'}, size/3+1)
		return websocket.Binary, p[:size]
	}
	return websocket.Text, []byte(strings.Repeat("aé€𝄞", size/10))
}

// talk has one coroutine that sends, and one that receives.
func (x *caller) talk(c *coroutine.Conn, under *websocket.Conn) error {
	err := c.Co().Do(act.All(
		coro.New(func(co *coro.Co) error {
			for n := range x.messages {
				kind, p := x.message(n)
				if x.w.Rand().IntN(4) == 0 {
					if err := x.push(co, under, websocket.Prepare(kind, p)); err != nil {
						return err
					}
				} else if err := c.Write(kind, p); err != nil {
					return err
				}
				clear(p) // it is this side's
				if x.w.Rand().IntN(4) == 0 {
					if err := co.Sleep(time.Duration(x.w.Rand().Int64N(int64(50 * time.Millisecond)))); err != nil {
						return err
					}
				}
			}
			return nil
		}),
		coro.New(func(*coro.Co) error {
			for ; x.got < x.messages; x.got++ {
				m, err := c.Read()
				if err != nil {
					return err
				}
				if kind, p := x.message(x.got); m.Type != kind || !bytes.Equal(m.Data, p) {
					x.w.Errorf("message %d, %d bytes of type %d, came back as %d bytes of type %d", x.got, len(p), kind, len(m.Data), m.Type)
				}
			}
			if x.stays {
				_, err := c.Read()
				return err
			}
			return nil
		})))
	return kept(x.w, err)
}

// push waits for room.
func (x *caller) push(co *coro.Co, c *websocket.Conn, p *websocket.Prepared) error {
	for {
		err := c.Push(p)
		if _, blocked := err.(act.Blocked); !blocked {
			return err
		}
		if err := co.Unblock(err); err != nil {
			return err
		}
	}
}
