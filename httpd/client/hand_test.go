package client_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/client"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// unhurried is without a limit.
var unhurried = client.Timeouts{Wait: -1, Connect: -1, Head: -1, Idle: -1}

// Calls of two schedulers share the few connections that there may be, and make no others.
func TestConnectionsAreHandedOver(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		o, conns := site(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RequestURI) })
		o.MaxConns, o.Timeouts = most, unhurried
		r := servertest.Start(t, act.Config{Schedulers: 2}, func(s *act.Scheduler) error {
			for i := range 4 {
				s.Spawn(coro.New(func(co *coro.Co) error {
					for n := range 250 {
						target := fmt.Sprintf("/%d/%d/%d", s.Index(), i, n)
						answer, content, err := fetch(co, &client.Call{Origin: o, Target: target})
						if err != nil || content != target || answer.Close() != nil {
							return fmt.Errorf("%s is answered with %q, %w", target, content, err)
						}
					}
					return nil
				}))
			}
			return nil
		})
		require.NoError(t, r.End())
		require.Equal(t, int32(most), conns.Load())
		require.NoError(t, r.Group.Close())
		require.Zero(t, o.Conns())
	}
}

// TestWorldHands has a server with several schedulers that asks two origins, with fewer connections than requests. Each request is
// answered, although idle connections are on other schedulers, or are those of the other origin.
func TestWorldHands(t *testing.T) {
	// Without faults that end a connection.
	f := sim.Anything().Without("reset", "aborted connection", "no memory", "no descriptors", "refused connect", "connect timed out")
	sim.TestWith(t, sim.Options{Faults: f}, func(w *sim.World) {
		pick := func(of ...int) int { return of[w.Rand().IntN(len(of))] }
		web := &httpd.Server{Timeouts: httpd.Timeouts{Head: -1, Idle: -1}, Handler: func(a *httpd.Response, r *httpd.Request) act.Action {
			_, _ = a.WriteString(string(r.Path()))
			return act.Seq(&listener.Sleep{For: time.Duration(w.Rand().IntN(int(50 * time.Millisecond)))})
		}}
		x := &asker{w: w}
		if most := pick(0, 1, 3); most > 0 {
			x.bound = &client.Client{MaxConns: most}
		}
		var doors []func(*act.Scheduler) error
		for i := range 2 {
			door := &service.Listener{Address: fmt.Sprintf("10.0.0.2:%d", 80+i), Handler: web.Serve}
			doors = append(doors, door.Setup)
			x.origins[i] = &client.Origin{Address: door.Address, Timeouts: unhurried, MaxConns: pick(1, 1, 2, 4), MaxIdle: pick(-1, 0, 0, 1),
				IdleTimeout: time.Hour, Client: x.bound, Protocol: client.Protocol(pick(0, 0, 0, int(client.HTTP2)))}
		}
		_, err := w.Server("web", act.Config{}, doors...)
		require.NoError(t, err)
		front := &httpd.Server{Handler: x.ask, Timeouts: httpd.Timeouts{Head: -1, Idle: -1}}
		door := &service.Listener{Address: "10.0.0.1:80", Handler: front.Serve}
		_, err = w.Server("front", act.Config{Schedulers: pick(2, 3), TurnsPerPass: pick(0, 1)}, append(party.Engine(w), door.Setup)...)
		require.NoError(t, err)
		for i := range 8 {
			w.Client(door.Address, func(c *sim.Client) error { return x.visit(c, i) })
		}
	})
}

// asker is a server that asks origins.
type asker struct {
	w       *sim.World
	bound   *client.Client
	origins [2]*client.Origin
}

func (x *asker) ask(w *httpd.Response, r *httpd.Request) act.Action {
	call := &client.Call{Origin: x.origins[x.w.Rand().IntN(2)], Target: string(r.Path())}
	if x.w.Rand().IntN(8) == 0 {
		call.Filter = func(*listener.Conn) act.Action { return nil } // it needs a connection of its own
	}
	var answer *client.Response
	return act.Func(func(t *act.Task) act.Directive {
		if answer == nil {
			if d := call.Act(t); d != act.Done {
				return d
			}
			answer = call.Response()
		}
		for {
			in, err := answer.Peek()
			if err != nil {
				if err == io.EOF {
					_ = answer.Close()
				}
				return listener.Next(t, err)
			}
			_, _ = w.Write(in)
			answer.Discard(len(in))
		}
	})
}

// visit asks a few times, with pauses.
func (x *asker) visit(c *sim.Client, i int) error {
	in := bufio.NewReader(c)
	for n := range 6 {
		target := fmt.Sprintf("/%d/%d", i, n)
		if _, err := io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != target {
			return fmt.Errorf("%s is answered with %d %q, %w", target, res.StatusCode, got, err)
		}
		c.Sleep(time.Duration(c.Rand().IntN(4)) * 20 * time.Millisecond)
	}
	return nil
}
