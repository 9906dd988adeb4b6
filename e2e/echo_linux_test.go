package e2e

import (
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
)

func TestEchoesWhole(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		path := "unix:" + folder(t) + "/echo.sock"
		t.Run("tcp", func(t *testing.T) { echoesWhole(t, launch{echo: e, flags: idle}.start(t)) })
		t.Run("unix", func(t *testing.T) { echoesWhole(t, launch{echo: e, addr: path, flags: idle}.start(t)) })
	})
}

func echoesWhole(t *testing.T, s *server) {
	for _, row := range []struct {
		name        string
		size, piece int
	}{
		{"nothing but a half-close", 0, 1},
		{"one byte", 1, 1},
		{"64 bytes", 64, 64},
		{"a byte at a time", 4096, 1},
		{"pieces that fit nowhere", 1 << 20, 4093},
		{"10 MiB written, then half-closed", 10 << 20, 10 << 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.NoError(t, whole(s.dial(t), content(uint64(row.size), row.size), row.piece))
		})
	}
	t.Run("read only after the half-close", func(t *testing.T) { readsLate(t, s) })
	t.Run("a conversation", func(t *testing.T) { converses(t, s) })
	t.Run("100 clients at a time", func(t *testing.T) { echoesCrowd(t, s) })
	s.Stop(t)
}

// readsLate sends what the buffers of the kernel hold, 64 KiB, so that the server may be done with it long before the client
// reads.
func readsLate(t *testing.T, s *server) {
	c, data := s.dial(t), content(1, 64<<10)
	require.NoError(t, send(c, data, len(data)))
	heard, err := io.ReadAll(c)
	require.NoError(t, err)
	require.NoError(t, same(data, heard))
}

func converses(t *testing.T, s *server) {
	c := s.dial(t)
	for i := range 100 {
		require.NoError(t, ping(c, "message "+strconv.Itoa(i)))
	}
	require.NoError(t, leave(c))
}

func echoesCrowd(t *testing.T, s *server) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	require.NoError(t, together(100, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		c, err := s.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		return whole(c, content(random.Uint64(), random.IntN(256<<10)), 1+random.IntN(16<<10))
	}))
}

// 64 connections leave a reactor of two without any once in 2^63 times.
func TestEveryReactorHasItsShare(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		s := e.start(t, idle.with("-reactors", "0")...) // also busy ones: the default number
		before := s.polled(t)
		clients := s.dialed(t, 64)
		require.NoError(t, together(len(clients), func(i int) error { return ping(clients[i], "share") }))
		require.Len(t, s.reactors(t), defaultReactors, "one pinned thread each, where there are two CPUs or more")
		shares, sum := []int{}, 0
		for poller, n := range s.polled(t) {
			if share := n - before[poller]; share > 0 {
				shares, sum = append(shares, share), sum+share
			}
		}
		t.Logf("shares %v", shares)
		require.Len(t, shares, defaultReactors, "a reactor without connections")
		require.Equal(t, len(clients), sum, "each connection is one reactor's")
	})
}

func TestMoreReactorsThanCPUs(t *testing.T) {
	plainly(t)
	t.Parallel()
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		t.Parallel()
		s := e.start(t, idle.with("-reactors", strconv.Itoa(runtime.NumCPU()+1))...)
		require.NoError(t, finish(s.talkers(t, 20)))
		s.Stop(t)
	})
}

// A stopped process is one that the machine was suspended under, or that a debugger looked at; the wait
// for events ends with EINTR when it continues.
func TestStoppedAndContinuedLosesNothing(t *testing.T) {
	plainly(t)
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		s := e.start(t, idle...)
		all := s.talkers(t, 10)
		for range tier.Choose(0, 3, 10) {
			s.Signal(t, unix.SIGSTOP)
			exectest.Eventually(t, patience, "the stop", func() bool { return s.state(t) == "T" })
			steady(t, 10*time.Millisecond, "silence", all[0].heard.Load)
			s.Signal(t, unix.SIGCONT)
			heard := all[0].heard.Load()
			exectest.Eventually(t, patience, "traffic", func() bool { return all[0].heard.Load() > heard })
		}
		require.NoError(t, finish(all))
		s.Stop(t)
	})
}

// SIGURG is what the Go runtime preempts goroutines with: it comes at any moment, in any system call.
func TestStormOfSIGURGHarmsNothing(t *testing.T) {
	plainly(t)
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		s := e.start(t, idle...)
		all := s.talkers(t, 10)
		for range tier.Choose(0, 2000, 10_000) {
			s.Signal(t, unix.SIGURG)
		}
		require.NoError(t, finish(all))
		s.Stop(t)
	})
}

// The race detector watches traffic, resets and the end.
func TestRaceDetectorIsSilent(t *testing.T) {
	plainly(t)
	eachEcho(t, func(t *testing.T, e echo, idle idle) {
		s := launch{echo: e, race: true, flags: idle}.start(t)
		all := s.talkers(t, 20)
		require.NoError(t, together(10, func(i int) error { return s.inTurn(uint64(i), 10, resetAnywhere) }))
		s.Signal(t, unix.SIGTERM)
		require.NoError(t, finish(all))
		require.Zero(t, s.Exit(t)) // the detector's own status is 66
	})
}
