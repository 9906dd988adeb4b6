package sim_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/filtertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldFilters has one server dial another, with filters on both sides: a header that changes the peer's address, and a
// handshake after which all bytes are others. Clients from outside break them off, are slow, or send something else; and
// an order may come to either server at any time.
func TestWorldFilters(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		const backend, named = "10.0.0.1:7007", "192.0.2.7:4711"
		ordered, limit := false, pick(w, 10*time.Second, time.Second)
		handler := func(c *listener.Conn) act.Action {
			if at := c.RemoteAddr(); at == nil || at.String() != named {
				w.Errorf("the peer is %v after the filters", at)
			}
			return echo.Echo(c)
		}
		header := proxyproto.Header{Version: pick(w, 1, 2), Source: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(named)),
			Destination: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(backend))}
		back := &service.Listener{Address: backend, Handler: handler, Limits: patient(w), MaxConns: pick(w, 0, 3),
			Filters: []listener.Filter{anyHeader, paused(w), filtertest.Mask(byte(1 + w.Rand().IntN(255)))}, FilterTimeout: limit}
		if back.MaxConns > 0 {
			limit = 500 * time.Millisecond // a client that waits takes the place of one whose header is that late
		}
		diallers := func(s *act.Scheduler) error {
			for range 3 {
				s.Spawn(&dialler{w: w, ordered: &ordered, limit: limit, dial: listener.Connect{Address: backend, Limits: patient(w), FilterTimeout: time.Hour,
					Filters: []listener.Filter{proxyproto.Client(header), paused(w), filtertest.Mask(byte(1 + w.Rand().IntN(255)))}}})
			}
			return nil
		}
		cfg := act.Config{Schedulers: pick(w, 1, 2), TurnsPerPass: pick(w, 0, 1, 8)}
		b, err := w.Server("back", cfg, append(anyEngine(w), back.Setup)...)
		require.NoError(t, err)
		f, err := w.Server("front", cfg, append(anyEngine(w), diallers)...)
		require.NoError(t, err)
		for range 6 {
			w.Client(backend, func(c *sim.Client) error { return wrongly(w, c) })
		}
		w.At(59*time.Second, func() { ordered = true }) // the world waits for it, and then ends the servers
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, time.Second)))), func() {
				ordered = true
				pick(w, b, f).Shutdown(terms)
			})
		}
	})
}

// anyHeader is a filter that reads a PROXY header, from wherever it comes.
var anyHeader = proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}})

// paused is a filter that takes its time, sometimes on another goroutine.
func paused(w *sim.World) listener.Filter {
	return func(*listener.Conn) act.Action {
		switch w.Rand().IntN(4) {
		case 0:
			return &listener.Sleep{For: time.Duration(w.Rand().Int64N(int64(time.Millisecond)))}
		case 1:
			return &act.Call[int]{F: func() (int, error) { return 0, nil }}
		}
		return nil
	}
}

// wrongly is a client that the filters refuse, or that goes before they have finished.
func wrongly(w *sim.World, c *sim.Client) error {
	for _, part := range pick(w, []string{"GET / HTTP/1.1\r\n\r\n"}, []string{"PROXY TCP4 192.0.2.7", " 10.0.0.1 4711 80\r\n", "\x00"},
		[]string{"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n"}, nil) {
		if _, err := io.WriteString(c, part); err != nil {
			return nil
		}
		c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Millisecond))))
	}
	if c.Rand().IntN(2) == 0 {
		_ = c.Close()
		return nil
	}
	_, err := io.Copy(io.Discard, c) // until it is refused
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}

// dialler connects, sends some bytes through the filters, and wants them back.
type dialler struct {
	w         *sim.World
	ordered   *bool
	limit     time.Duration // after which the other side may have given up
	dial      listener.Connect
	c         *listener.Conn
	sent, got int
}

const dialled = 20_000 // bytes

func (d *dialler) Act(t *act.Task) act.Directive {
	if d.c == nil {
		if verdict := d.dial.Act(t); verdict != act.Done {
			return d.judge(t, verdict, t.Err())
		}
		d.c = d.dial.Conn()
	}
	for d.sent < dialled {
		p := make([]byte, min(dialled-d.sent, 1+d.w.Rand().IntN(3000)))
		for i := range p {
			p[i] = byte(d.sent + i)
		}
		n, err := d.c.Write(p)
		d.sent += n
		if err == nil {
			continue
		}
		if b, ok := err.(act.Blocked); ok {
			b.Arm(t)
			break
		}
		return d.judge(t, act.Failed, err)
	}
	in, err := d.c.Peek(1)
	for _, b := range in {
		if b != byte(d.got) {
			d.w.Errorf("byte %d came back as %d", d.got, b)
		}
		d.got++
	}
	d.c.Discard(len(in))
	switch {
	case d.got == dialled:
		_ = d.c.Close()
		return act.Done
	case err == nil:
		return act.Yield
	case err == io.EOF:
		return d.judge(t, act.Failed, io.ErrUnexpectedEOF)
	}
	verdict := listener.Next(t, err)
	return d.judge(t, verdict, err)
}

// judge says whether it may have failed.
func (d *dialler) judge(t *act.Task, verdict act.Directive, err error) act.Directive {
	if verdict != act.Failed {
		return verdict
	}
	if !*d.ordered && d.w.Now() < d.limit && d.w.Counts().Broken == 0 && !errors.Is(err, syscall.ECONNREFUSED) {
		d.w.Errorf("a dialler got %d of %d bytes back: %v", d.got, d.sent, err)
	}
	return act.Done
}

func (d *dialler) Stop(t *act.Task, o shutdown.Order) { d.dial.Stop(t, o) }
func (d *dialler) Abandon() act.Action                { return d.dial.Abandon() }
func (d *dialler) String() string                     { return "dialler" }

func (d *dialler) Close() error {
	if d.c != nil {
		d.c.Abort()
	}
	return d.dial.Close()
}
