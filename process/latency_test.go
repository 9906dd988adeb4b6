package process_test

import (
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/service"
)

// Two processes on each scheduler send to each other all the time, so no scheduler is ever idle. An echo server on the
// same schedulers must still answer soon. The clients compete with both schedulers for the CPUs, and with other
// programs. So the test also measures with a task that keeps each scheduler busy, and compares with that.
func TestHandOffsDoNotDelaySockets(t *testing.T) {
	tier.Need(t, tier.Full, "compares latencies")
	const soon, times = 20 * time.Millisecond, 4
	server := &service.TCP{Address: "127.0.0.1:0", Handler: echo.Echo}
	sys := process.New(process.Config{})
	r := running{servertest.Start(t, act.Config{Schedulers: 2}, server.Setup, sys.Setup), sys}
	calm := roundTrips(t, server.Addr())
	t.Logf("idle schedulers: 50 %% within %v, 99 %% within %v", calm.share(50), calm.share(99))
	pairs := [2]*pingPong{newPingPong(sys), newPingPong(sys)}
	for tries := 1; ; tries++ {
		end := r.keepBusy()
		busy := roundTrips(t, server.Addr())
		end()
		for _, c := range pairs {
			c.begin(t)
		}
		held := roundTrips(t, server.Addr())
		said := [2]int64{}
		for _, c := range pairs {
			c.end()
			for i := range said {
				said[i] += c.said[i].Swap(0)
			}
		}
		t.Logf("a busy task on each scheduler: 50 %% within %v, 99 %% within %v", busy.share(50), busy.share(99))
		t.Logf("two processes on each scheduler: 50 %% within %v, 99 %% within %v; meanwhile they sent %v", held.share(50), held.share(99), said)
		require.Positive(t, said[0])
		require.Positive(t, said[1])
		if held.share(99) < max(soon, times*busy.share(99)) {
			break
		}
		require.Less(t, tries, 5, "it is too slow each time")
	}
	for _, c := range pairs {
		c.one.Kill()
		c.two.Kill()
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}

// pingPong is two processes that send each other a message until end is called.
type pingPong struct {
	sys      *process.System
	goesOn   atomic.Bool
	said     [2]atomic.Int64 // on each scheduler
	one, two process.Ref[int]
}

func newPingPong(sys *process.System) *pingPong {
	c := &pingPong{sys: sys}
	answer := func(to *process.Ref[int]) process.Action[int] {
		return process.Handler(func(p *process.Self[int], m int) {
			if c.said[p.Scheduler().Index()].Add(1); c.goesOn.Load() {
				_ = to.Send(p, m)
			}
		})
	}
	c.one = process.Spawn(sys, answer(&c.two), process.Options{})
	c.two = process.Spawn(sys, answer(&c.one), process.Options{})
	return c
}

func (c *pingPong) begin(t *testing.T) {
	c.goesOn.Store(true)
	require.NoError(t, c.one.Send(c.sys, 0))
}

func (c *pingPong) end() { c.goesOn.Store(false) }

// keepBusy runs a task that is always ready on each scheduler, until end is called.
func (r running) keepBusy() (end func()) {
	var over atomic.Bool
	for i := range r.Group.Schedulers() {
		r.On(i, func(s *act.Scheduler) {
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				if over.Load() {
					return act.Done
				}
				return act.Yield
			}))
		})
	}
	return func() { over.Store(true) }
}

// times are sorted durations.
type times []time.Duration

func (x times) share(percent int) time.Duration { return x[len(x)*percent/100] }

// roundTrips measures clients that send 64 bytes and read them back, again and again.
func roundTrips(t *testing.T, addr net.Addr) (all times) {
	const clients, each = 8, 250
	var taken [clients]times
	var together sync.WaitGroup
	for i := range clients {
		c, err := net.Dial("tcp", addr.String())
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
		require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
		together.Go(func() {
			m := make([]byte, 64)
			for len(taken[i]) < each {
				began := time.Now()
				if err := exchange(c, m); err != nil {
					t.Errorf("after %d round trips: %v", len(taken[i]), err)
					return
				}
				taken[i] = append(taken[i], time.Since(began))
			}
		})
	}
	together.Wait()
	for _, x := range taken {
		all = append(all, x...)
	}
	require.Len(t, all, clients*each, "every one is answered")
	slices.Sort(all)
	return all
}

// exchange sends m and reads as many bytes.
func exchange(c net.Conn, m []byte) error {
	if _, err := c.Write(m); err != nil {
		return err
	}
	_, err := io.ReadFull(c, m)
	return err
}
