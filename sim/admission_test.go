package sim_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/sim"
)

// TestWorldSources has clients of a few sources, named by PROXY headers, on schedulers that share a Limiter. They come
// together or one after the other, and go in all ways. No source has more than it may; and a source that has nothing,
// and has not come for long, is served.
func TestWorldSources(t *testing.T) {
	t.Parallel()
	sim.Test(t, func(w *sim.World) {
		const address = "10.0.0.1:7007"
		x := &sources{World: w, open: map[netip.Prefix]int{}, came: map[netip.Prefix][]time.Duration{}}
		x.limits = &admission.Limiter{Conns: pick(w, 0, 1, 3), Rate: pick(w, 0, 1, 5), Burst: pick(w, 0, 1, 3), Remembered: pick(w, 0, 1)}
		tcp := &service.Listener{Address: address, Limits: patient(w), FilterTimeout: time.Hour, Handler: x.serve,
			Filters: []listener.Filter{anyHeader, paused(w), x.limits.Filter}}
		tcp.Limits.Read = 0
		v, err := w.Server("server", act.Config{Schedulers: pick(w, 1, 3), TurnsPerPass: pick(w, 0, 1, 8)}, append(anyEngine(w), tcp.Setup)...)
		require.NoError(t, err)
		for range 20 {
			w.At(time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, 5*time.Second)))), func() { w.Client(address, x.visits) })
		}
		if terms, given := order(w); given {
			w.At(time.Duration(w.Rand().Int64N(int64(pick(w, time.Millisecond, time.Second)))), func() { v.Shutdown(terms) })
			return
		}
		w.At(50*time.Second, func() {
			if x.here > 0 || x.last > 30*time.Second {
				return // a fault has held up one of the others
			}
			for i := range 3 { // the limits are as new
				w.Client(address, func(c *sim.Client) error { return x.isServed(c, sourceOf(i, 1)) })
			}
		})
	})
}

type sources struct {
	*sim.World
	limits *admission.Limiter
	here   int           // clients that have not gone, and their connections
	last   time.Duration // when one of them came or went
	open   map[netip.Prefix]int
	came   map[netip.Prefix][]time.Duration // of served connections
}

// sourceOf returns an address of a source.
func sourceOf(source, address int) netip.Addr {
	if source == 0 {
		return netip.AddrFrom4([4]byte{192, 0, 2, 7})
	}
	return netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 7: byte(source), 15: byte(address)})
}

// serve counts a connection while its action lives.
func (x *sources) serve(c *listener.Conn) act.Action {
	from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
	source := netip.PrefixFrom(from, 32)
	if from.Is6() {
		source = netip.PrefixFrom(from, 64).Masked()
	}
	l, now := x.limits, c.Scheduler().Now()
	x.here, x.last = x.here+1, x.Now()
	if x.open[source]++; l.Conns > 0 && x.open[source] > l.Conns {
		x.Errorf("%v has %d connections", source, x.open[source])
	}
	x.came[source] = append(x.came[source], now)
	for i, first := range x.came[source] {
		n, burst := len(x.came[source])-i, l.Burst
		if burst == 0 {
			burst = l.Rate
		}
		// The schedulers read the clock at different times, and filters may take a millisecond between the count and here.
		if most := burst + int((now-first+5*time.Millisecond)*time.Duration(l.Rate)/time.Second); l.Rate > 0 && l.Remembered == 0 && n > most {
			x.Errorf("%v has come %d times in %v", source, n, now-first)
		}
	}
	if now < 40*time.Second && x.Rand().IntN(4) == 0 {
		x.leaves(source)
		c.Abort()
		return nil
	}
	fmt.Fprint(c, "welcome")
	return &counted{act.Child{Action: echo.Echo(c)}, func() { x.leaves(source) }}
}

func (x *sources) leaves(source netip.Prefix) {
	x.open[source]--
	x.here, x.last = x.here-1, x.Now()
}

// counted calls left when its action has ended.
type counted struct {
	act.Child
	left func()
}

func (x *counted) Close() error {
	if x.left != nil {
		x.left()
		x.left = nil
	}
	return x.Child.Close()
}

func (x *counted) Act(t *act.Task) act.Directive {
	d := x.Child.Act(t)
	if d.Finished() {
		_ = x.Close() // a session closes what has not finished
	}
	return d
}

func (x *sources) says(c *sim.Client, from netip.Addr) error {
	at := net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 4711))
	header := proxyproto.Header{Version: 1 + c.Rand().IntN(2), Source: at, Destination: at}
	_, err := c.Write(header.Append(nil))
	return err
}

// visits is a client that may be refused.
func (x *sources) visits(c *sim.Client) error {
	x.here++
	defer func() { x.here, x.last = x.here-1, x.World.Now() }()
	if err := x.says(c, sourceOf(c.Rand().IntN(3), c.Rand().IntN(100))); err != nil {
		return nil
	}
	if _, err := io.ReadFull(c, make([]byte, len("welcome"))); err != nil {
		return nil
	}
	c.Sleep(time.Duration(c.Rand().Int64N(int64(time.Second))))
	switch c.Rand().IntN(3) {
	case 0:
		c.Abort()
	case 1:
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
	return c.Close()
}

// isServed is a client that is within all limits.
func (x *sources) isServed(c *sim.Client, from netip.Addr) error {
	if err := x.says(c, from); err != nil {
		return err
	}
	if err := hears(c, "welcome"); err != nil {
		return err
	}
	return c.Close()
}
