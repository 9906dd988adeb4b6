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

// Processes that talk to each other without end hold up no socket: with two on each scheduler, which is then never idle,
// an echo on the same schedulers still comes soon. The time is that of clients which compete with both schedulers for the
// processors, and with whatever else the machine does. So what they find where a task keeps each scheduler as busy is
// measured beside it, and where that takes long already so may this.
func TestHandOffsDoNotDelaySockets(t *testing.T) {
	tier.Need(t, tier.Full, "compares latencies")
	const soon, times = 20 * time.Millisecond, 4
	server := &service.TCP{Address: "127.0.0.1:0", Handler: echo.Echo}
	sys := process.New(process.Config{})
	r := running{servertest.Start(t, act.Config{Schedulers: 2}, server.Setup, sys.Setup), sys}
	calm := roundTrips(t, server.Addr())
	t.Logf("nobody is busy: 50 %% within %v, 99 %% within %v", calm.share(50), calm.share(99))
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
		t.Logf("a task is busy on each scheduler: 50 %% within %v, 99 %% within %v", busy.share(50), busy.share(99))
		t.Logf("two chat on each scheduler: 50 %% within %v, 99 %% within %v; meanwhile they said %v", held.share(50), held.share(99), said)
		require.Positive(t, said[0])
		require.Positive(t, said[1])
		if held.share(99) < max(soon, times*busy.share(99)) {
			break
		}
		require.Less(t, tries, 5, "it is never good")
	}
	for _, c := range pairs {
		c.one.Kill()
		c.two.Kill()
	}
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}

// chat is two that send each other a message for as long as they are to.
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

// keepBusy has a task that is always ready on each scheduler, until it is to end.
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

// times are sorted.
type times []time.Duration

func (x times) share(percent int) time.Duration { return x[len(x)*percent/100] }

// roundTrips has some clients send 64 bytes each, and again when they are back.
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

// exchange sends m and waits until all of it is back.
func exchange(c net.Conn, m []byte) error {
	if _, err := c.Write(m); err != nil {
		return err
	}
	_, err := io.ReadFull(c, m)
	return err
}
