package coro_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

func TestMeasureSwitch(t *testing.T) {
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

func TestWhatWaitsDoesNotAlloc(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	for name, call := range map[string]func(co *coro.Co) error{
		"Yield":   (*coro.Co).Yield,
		"Sleep":   func(co *coro.Co) error { return co.Sleep(0) },
		"Await":   func(co *coro.Co) error { return co.WaitUntil(truly) },
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
				if err := p.end(); err != io.EOF {
					require.NoError(t, err)
				}
				servertest.Step(t, l.S)
			})
		}
	}
}
