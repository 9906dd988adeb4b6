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
		h := &crowd{w: w, at: pick(w, "10.0.0.1:80", "unix:/run/web"), asked: map[string]bool{}, v2: pick(w, false, true)}
		web := &httpd.Server{Handler: h.answer, Timeouts: httpd.Timeouts{Head: -1, Idle: -1}}
		most := pick(w, 1, 1, 2, 4)
		tcp := &service.Listener{Address: "10.0.0.1:80", Handler: web.Serve, MaxConns: most}
		unix := &service.Listener{Address: "unix:/run/web", Handler: web.Serve, MaxConns: most}
		cfg := act.Config{Schedulers: pick(w, 1, 2, 3, 3, 3), TurnsPerPass: pick(w, 0, 3)}
		_, err := w.Server("web", cfg, append(anyEngine(w), tcp.Setup, unix.Setup)...)
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
	v2    bool            // clients speak HTTP/2
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
			ask := h.ask
			if h.v2 {
				ask = h.ask2
			}
			err := ask(c, in, id, n)
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

// ask makes a request, and reads the answer, perhaps late.
func (h *crowd) ask(c *sim.Client, in *bufio.Reader, id string, _ int) error {
	if err := inTwo(c, "GET "+id+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
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

// ask2 is request n of a connection over HTTP/2.
func (h *crowd) ask2(c *sim.Client, in *bufio.Reader, id string, n int) error {
	text, stream := "", byte(2*n+1)
	if n == 0 {
		text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + // SETTINGS
			"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x10\x00\x00\x00" // WINDOW_UPDATE: there is room for all answers
	}
	head := "\x82\x86\x01\x01a\x04" + string(rune(len(id))) + id // GET, http, :authority a, :path
	text += string([]byte{0, 0, byte(len(head)), 1, 5, 0, 0, 0, stream}) + head
	if err := inTwo(c, text); err != nil {
		return err
	}
	var got []byte
	for {
		var f [9]byte
		if _, err := io.ReadFull(in, f[:]); err != nil {
			return err
		}
		p := make([]byte, int(f[0])<<16|int(f[1])<<8|int(f[2]))
		if _, err := io.ReadFull(in, p); err != nil {
			return err
		}
		switch f[3] {
		case 0: // DATA
			got = append(got, p...)
		case 1: // HEADERS
			c.Sleep(party.From(c.Rand(), 0, 0, 0, 5*time.Second))
		}
		if ends := f[3] == 0 && f[4]&1 != 0; ends && f[8] == stream && strings.TrimRight(string(got), "x") == id {
			return nil
		} else if ends {
			return fmt.Errorf("%s is answered with %q on stream %d", id, got, f[8])
		}
	}
}

// inTwo sends text, perhaps in two pieces.
func inTwo(c *sim.Client, text string) error {
	cut := c.Rand().IntN(len(text))
	if _, err := c.Write([]byte(text[:cut])); err != nil {
		return err
	}
	c.Sleep(party.From(c.Rand(), 0, 0, 2*time.Second))
	_, err := c.Write([]byte(text[cut:]))
	return err
}
