package sim_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/party"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldBudget has clients that make a web server hold much: they do not read large answers, or send large bodies
// slowly. After every turn each scheduler holds at most 5/4 of its budget, and no pause lasts longer than it may.
// Clients that hold nothing are answered all the time, and none of them is cut off.
func TestWorldBudget(t *testing.T) {
	t.Parallel()
	lasting := party.Lasting().Without("delayed event", "short write", "false full")
	sim.TestWith(t, sim.Options{Faults: lasting}, func(w *sim.World) {
		const at = "10.0.0.1:80"
		h := &holders{w: w, most: pick(w, 200_000, 500_000, 1_000_000)}
		web := &httpd.Server{Handler: h.answer, Timeouts: httpd.Timeouts{Head: -1, Idle: -1, Body: -1, Write: -1}}
		tcp := &service.Listener{Address: at, Handler: web.Serve, Limits: listener.Limits{High: pick(w, 0, 20_000)}, MaxConns: -1}
		cfg := act.Config{Schedulers: pick(w, 1, 1, 2), TurnsPerPass: pick(w, 0, 3), Trace: h.trace()}
		_, err := w.Server("web", cfg, append(anyEngine(w), listener.Budget(h.most*cfg.Schedulers), tcp.Setup)...)
		require.NoError(t, err)
		for range 5 + w.Rand().IntN(40) {
			w.Client(at, pick(w, h.reads, h.sends))
		}
		polite := map[*sim.Client]bool{}
		for range 5 {
			polite[w.Client(at, h.asks)] = true
		}
		w.Excuse(func(c *sim.Client, err error) bool { return !polite[c] && cutOff(err) })
	})
}

type holders struct {
	w    *sim.World
	most int // bytes, on each scheduler

	paused map[*act.Scheduler]time.Duration // since when
}

// trace looks after each turn.
func (h *holders) trace() *act.Trace {
	h.paused = map[*act.Scheduler]time.Duration{}
	return &act.Trace{
		TurnEnd: func(t *act.Task, _ act.Directive) {
			if n := budget.Of(t.Scheduler()).Total(); n > h.most+h.most/4 {
				h.w.Errorf("%d bytes are held, of %d", n, h.most)
			}
		},
		Idle: func(s *act.Scheduler, _ time.Duration) {
			switch since, was := h.paused[s]; {
			case !budget.Of(s).Paused():
				delete(h.paused, s)
			case !was:
				h.paused[s] = s.Now()
			case s.Now()-since > 5200*time.Millisecond:
				h.w.Errorf("reading has paused for %v", s.Now()-since)
			}
		},
	}
}

func (h *holders) answer(w *httpd.Response, r *httpd.Request) act.Action {
	switch text := strings.Repeat("x", 10_000+h.w.Rand().IntN(h.most/2)); string(r.Path()) {
	case "/body":
		return httpd.WithBody(h.most, func(w *httpd.Response, _ *httpd.Request, body []byte) act.Action {
			fmt.Fprint(w, len(body))
			return nil
		})(w, r)
	case "/whole":
		_, _ = w.WriteString(text)
		return nil
	case "/pieces":
		return act.Func(func(t *act.Task) act.Directive {
			n, err := w.WriteString(text)
			if text = text[n:]; err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})
	}
	_, _ = w.WriteString("small")
	return nil
}

// reads asks for large answers, and reads them late, or never.
func (h *holders) reads(c *sim.Client) error {
	in := bufio.NewReader(c)
	for range 1 + c.Rand().IntN(3) {
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", party.From(c.Rand(), "/whole", "/pieces")); err != nil {
			return err
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(20 * time.Second))))
		if c.Rand().IntN(4) == 0 {
			return nil
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			_, cut := in.Peek(1)
			return cmp.Or(cut, err) // of a line that was cut off err says that it is malformed
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
	}
	return nil
}

// sends sends a large body slowly.
func (h *holders) sends(c *sim.Client) error {
	size := c.Rand().IntN(h.most)
	if _, err := fmt.Fprintf(c, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", size); err != nil {
		return err
	}
	for left := size; left > 0; {
		n := min(left, 1+c.Rand().IntN(50_000))
		if _, err := c.Write(make([]byte, n)); err != nil {
			return err
		}
		left -= n
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
	}
	return wants(bufio.NewReader(c), fmt.Sprint(size))
}

// asks makes small requests, and waits for each answer.
func (h *holders) asks(c *sim.Client) error {
	in := bufio.NewReader(c)
	for range 20 {
		begun := c.Now()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			return err
		}
		if err := wants(in, "small"); err != nil {
			return err
		}
		if took := c.Now().Sub(begun); took > time.Second {
			return fmt.Errorf("an answer took %v", took)
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(2 * time.Second))))
	}
	return nil
}

func wants(in *bufio.Reader, text string) error {
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	if got, err := io.ReadAll(res.Body); err != nil || string(got) != text {
		return fmt.Errorf("%q in place of %q: %w", got, text, err)
	}
	return nil
}
