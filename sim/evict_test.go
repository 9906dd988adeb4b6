package sim_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// The only connection that there may be is closed for a client that waits, and not before it has been idle for EvictAfter.
func TestAnIdleConnectionIsClosedForAClientThatWaits(t *testing.T) {
	for waits, want := range map[bool]time.Duration{true: 600 * time.Millisecond, false: 2 * time.Second} {
		w := sim.New(sim.Options{})
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: echo.Echo, MaxConns: 1, EvictAfter: 600 * time.Millisecond}
		_, err := w.Server("server", act.Config{}, tcp.Setup)
		require.NoError(t, err)
		w.Client(tcp.Address, func(c *sim.Client) error {
			_ = c.SetReadDeadline(c.Now().Add(2 * time.Second))
			_, _ = io.ReadAll(c)
			require.InDelta(t, want, w.Now(), float64(200*time.Millisecond))
			require.GreaterOrEqual(t, w.Now(), want)
			return nil
		})
		if waits {
			w.At(300*time.Millisecond, func() { w.Client(tcp.Address, func(*sim.Client) error { return nil }) })
		}
		require.NoError(t, w.Run())
	}
}

// TestWorldEvict has more clients than a web server may have connections, and none leaves before all have been served: idle
// ones have to make room. A request that has reached the handler is answered all the same, however long that takes, and
// however long its client takes to read the answer.
func TestWorldEvict(t *testing.T) {
	t.Parallel()
	// Without faults that end a connection: here only the server does.
	f := sim.Anything().Without("reset", "aborted connection", "no memory", "refused connect", "connect timed out")
	sim.TestWith(t, sim.Options{Faults: f}, func(w *sim.World) {
		h := &crowd{w: w, at: pick(w, "10.0.0.1:80", "unix:/run/web"), asked: map[string]bool{}}
		web := &httpd.Server{Handler: h.answer, Timeouts: httpd.Timeouts{Head: -1, Idle: -1}}
		most := pick(w, 1, 1, 2, 4)
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: web.Serve, MaxConns: most}
		unix := &service.Listener{Address: "unix:/run/web", Handler: web.Serve, MaxConns: most}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3, 3, 3), TurnsPerPass: pick(w, 0, 3)}
		_, err := w.Server("web", cfg, tcp.Setup, unix.Setup)
		require.NoError(t, err)
		h.left = most + 1 + w.Rand().IntN(8)
		for i := range h.left {
			h.dial(i, 0)
		}
	})
}

// crowd is the server and its clients.
type crowd struct {
	w     *sim.World
	at    string
	asked map[string]bool // requests that have reached the handler
	left  int             // clients that have not been served
}

func (h *crowd) answer(w *httpd.Response, r *httpd.Request) act.Action {
	id := string(r.Path())
	h.asked[id] = true
	late := time.Duration(h.w.Rand().Int64N(int64(3 * time.Second)))
	text := id + strings.Repeat("x", pick(h.w, 0, 0, 60<<10)) // what does not go out at once is less than Limits.High
	return act.Seq(&listener.Sleep{For: late}, act.Func(func(*act.Task) act.Directive {
		_, _ = w.WriteString(text)
		return act.Done
	}))
}

// dial adds client i, which has dialled so often before: its connection may have made room before its request was there.
func (h *crowd) dial(i, before int) {
	h.w.Client(h.at, func(c *sim.Client) error {
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			id := fmt.Sprintf("/%d/%d/%d", i, before, n)
			err := h.ask(c, in, id)
			switch {
			case err != nil && h.asked[id]:
				return fmt.Errorf("%s has reached the handler: %w", id, err)
			case err != nil && n == 0:
				h.dial(i, before+1)
				return nil
			case err != nil:
				return nil
			case n == 0:
				h.left--
			}
			for pause := c.Rand().IntN(100); pause > 0 || n == 3; pause-- {
				if h.left == 0 {
					return nil
				}
				c.Sleep(100 * time.Millisecond)
			}
		}
	})
}

// ask makes a request, perhaps in pieces, and reads the answer, perhaps late.
func (h *crowd) ask(c *sim.Client, in *bufio.Reader, id string) error {
	text := "GET " + id + " HTTP/1.1\r\nHost: a\r\n\r\n"
	cut := c.Rand().IntN(len(text))
	if _, err := c.Write([]byte(text[:cut])); err != nil {
		return err
	}
	c.Sleep(party.From(c.Rand(), 0, 0, 2*time.Second))
	if _, err := c.Write([]byte(text[cut:])); err != nil {
		return err
	}
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	c.Sleep(party.From(c.Rand(), 0, 0, 0, 5*time.Second))
	if got, err := io.ReadAll(res.Body); err != nil || strings.TrimRight(string(got), "x") != id {
		return fmt.Errorf("%s is answered with %q, %w", id, got, err)
	}
	return nil
}
