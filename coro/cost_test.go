package coro_test

import (
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/price"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
)

func TestTheCostOfASwitch(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	s.Spawn(coro.New(func(co *coro.Co) error {
		for {
			if err := co.Yield(); err != nil {
				return err
			}
		}
	}))
	price.Require(t, 250, func(n int) { _, _ = s.Step(n) }) // there and back
}

// A new coroutine costs several times as much as one that is used again. Both are measured side by side, under the same
// load.
func TestTheCostOfAShortBodyIsLessOnACoroutineUsedAgain(t *testing.T) {
	tier.Measure(t, "measures time")
	const pairs, n = 15, 2000
	var ratios []float64
	for range pairs {
		ratios = append(ratios, float64(made(n))/float64(usedAgain(n)))
	}
	slices.Sort(ratios)
	t.Logf("made / used again: %.1f", ratios[pairs/2])
	require.Greater(t, ratios[pairs/2], 1.3)
}

func made(n int) time.Duration {
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	begun := time.Now()
	for range n {
		s.Spawn(coro.New(func(*coro.Co) error { return nil }))
		_ = s.Run() // which leaves no coroutine
	}
	return time.Since(begun)
}

func usedAgain(n int) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := act.New(act.Config{})
	defer func() { _ = s.Close() }()
	s.Spawn(coro.New(func(co *coro.Co) error { return co.Sleep(time.Hour) })) // while one lives the others rest
	_, _ = s.Step(1)
	begun := time.Now()
	for range n {
		s.Spawn(coro.New(func(*coro.Co) error { return nil }))
		_, _ = s.Step(1)
	}
	return time.Since(begun)
}

func TestWhatWaitsDoesNotAlloc(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	for name, call := range map[string]func(co *coro.Co) error{
		"Yield":   (*coro.Co).Yield,
		"Sleep":   func(co *coro.Co) error { return co.Sleep(0) },
		"Await":   func(co *coro.Co) error { return co.Await(truly) },
		"Unblock": func(co *coro.Co) error { return co.Unblock(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := steppedScheduler(t)
			s.Spawn(coro.New(func(co *coro.Co) error {
				for {
					for range 2 {
						if err := call(co); err != nil {
							return err
						}
					}
					if err := co.Yield(); err != nil {
						return err
					}
				}
			}))
			_, err := s.Step(1000)
			require.NoError(t, err)
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = s.Step(10) }))
		})
	}
}

func truly(*act.Task) bool { return true }

func TestAMessageThatIsWaitedForDoesNotAlloc(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	for name, body := range map[string]func(*coro.Conn) error{
		"io.Copy": echo,
		"Read and Write": func(c *coro.Conn) error {
			p := make([]byte, 64)
			for {
				n, err := c.Read(p)
				if err != nil {
					return err
				}
				if _, err := c.Write(p[:n]); err != nil {
					return err
				}
			}
		},
		"WriteTo a Writer": func(c *coro.Conn) error { _, err := c.WriteTo(struct{ io.Writer }{c}); return err },
	} {
		for _, network := range networks {
			t.Run(name+" over "+network, func(t *testing.T) {
				l := bench(t)
				p, peer := converse(l, network, listener.Limits{}, body)
				ping, pong := make([]byte, 64), make([]byte, 64)
				message := func() {
					_, _ = peer.Write(ping)
					for n := 1; n > 0; {
						n, _ = l.S.Step(4)
					}
					_, _ = peer.Read(pong)
				}
				for range 10 {
					message()
				}
				require.Zero(t, testing.AllocsPerRun(300, message))
				_ = peer.Close()
				require.NoError(t, ended(p.end()))
				servertest.Step(t, l.S)
			})
		}
	}
}
