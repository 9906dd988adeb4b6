package sim_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/sim"
)

func TestMain(m *testing.M) { servertest.Worlds(m, 50, 1000) }

// worldOf returns a world with one server and its handler.
func worldOf(t *testing.T, o sim.Options, handler func(*listener.Conn) act.Action) (*sim.World, *sim.Server) {
	w := sim.New(o)
	tcp := &service.Listener{Address: "10.0.0.1:80", Handler: handler}
	v, err := w.Server("server", act.Config{Schedulers: 2}, tcp.Setup)
	require.NoError(t, err)
	return w, v
}

// failure runs w and returns its failure.
func failure(t *testing.T, w *sim.World) *sim.Failure {
	var f *sim.Failure
	require.ErrorAs(t, w.Run(), &f)
	return f
}

func reads(c *sim.Client) error {
	_, err := io.ReadAll(c)
	return err
}

func mute(*listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive { t.Waker(); return act.Wait })
}

func TestSameSeedGivesSameHistory(t *testing.T) {
	run := func(seed uint64) sim.Counts {
		w := sim.New(sim.Options{Seed: seed, Faults: sim.Anything()})
		mixed(t)(w)
		require.NoError(t, w.Run())
		return w.Counts()
	}
	hashes := map[uint64]bool{}
	seeds := tier.Choose(10, 2, 10)
	for seed := range uint64(seeds) {
		first := run(seed)
		percent := debug.SetGCPercent(1)
		require.Equal(t, first, run(seed), "seed %d", seed)
		debug.SetGCPercent(percent)
		hashes[first.Hash] = true
	}
	require.Len(t, hashes, seeds, "and another seed is another")
}

func TestDeadlockReportsWaits(t *testing.T) {
	w, _ := worldOf(t, sim.Options{Seed: 7}, mute)
	w.Client("10.0.0.1:80", reads)
	f := failure(t, w)
	require.ErrorContains(t, f, "deadlock: still waiting for every client to finish, but nothing can run and nothing is pending")
	_, waits, _ := strings.Cut(f.Error(), "still waiting:")
	require.Regexp(t, `client 1 of 10.0.0.1:80 \(connection \d+\) waits for something to read`, waits)
	require.Contains(t, waits, "sim_test.mute")
	require.Contains(t, f.Error(), "client 1 (connection")
	require.EqualValues(t, 7, f.Seed)
}

func TestLivelockFailsTheWorld(t *testing.T) {
	w, _ := worldOf(t, sim.Options{}, func(*listener.Conn) act.Action { return act.Func(func(*act.Task) act.Directive { return act.Yield }) })
	w.Client("10.0.0.1:80", reads)
	require.ErrorContains(t, w.Run(), "without progress in 1000000 steps")
}

func TestDisobeyedOrderFailsTheWorld(t *testing.T) {
	w, v := worldOf(t, sim.Options{}, mute)
	w.At(time.Second, func() { v.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded}) })
	w.Client("10.0.0.1:80", func(c *sim.Client) error { c.Sleep(2 * time.Second); return nil })
	require.ErrorContains(t, w.Run(), "still waiting for server to end")
}

func TestScriptErrorFailsTheWorld(t *testing.T) {
	mistake := errors.New("a mistake")
	w, _ := worldOf(t, sim.Options{}, echo.Echo)
	w.Client("10.0.0.1:80", func(*sim.Client) error { return mistake })
	require.ErrorIs(t, w.Run(), mistake)
	w, _ = worldOf(t, sim.Options{}, echo.Echo)
	w.Client("10.0.0.1:80", func(c *sim.Client) error { c.Go(func(*sim.Client) error { return mistake }); return nil })
	require.ErrorIs(t, w.Run(), mistake)
	w, _ = worldOf(t, sim.Options{}, echo.Echo)
	w.Client("10.0.0.1:80", func(c *sim.Client) error { w.Errorf("seen at %v", c.Now().Year()); return nil })
	require.ErrorContains(t, w.Run(), "seen at 2026")
}

// What is queued for many peers takes memory once, and the world does not demand that it is counted for each of them.
func TestAMessageToManyPeersIsHeldOnce(t *testing.T) {
	message := make([]byte, 1<<20)
	w := sim.New(sim.Options{})
	most := 0
	tcp := &service.Listener{Address: "10.0.0.1:80", Limits: listener.Limits{High: len(message), Linger: time.Hour},
		Handler: func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				if err := c.PushShared(message); err != nil {
					return t.Fail(err)
				}
				most = max(most, budget.Of(t.Scheduler()).Total())
				return act.Done
			})
		}}
	_, err := w.Server("server", act.Config{}, tcp.Setup)
	require.NoError(t, err)
	for range 5 {
		w.Client("10.0.0.1:80", func(c *sim.Client) error { c.Sleep(time.Second); return reads(c) })
	}
	require.NoError(t, w.Run())
	require.Less(t, most, 2*len(message))
}

// A reset by the server counts against it; a reset by a fault does not.
func TestResetsByFaultsAreExcused(t *testing.T) {
	breaks := func(c *listener.Conn) act.Action { c.Abort(); return nil }
	w, _ := worldOf(t, sim.Options{}, breaks)
	w.Client("10.0.0.1:80", reads)
	require.ErrorIs(t, w.Run(), syscall.ECONNRESET)

	w, _ = worldOf(t, sim.Options{}, breaks)
	w.Client("10.0.0.1:80", reads)
	w.Excuse(func(_ *sim.Client, err error) bool { return errors.Is(err, syscall.ECONNRESET) })
	require.NoError(t, w.Run())

	w, _ = worldOf(t, sim.Options{Faults: sim.Faults{}.With(1<<16, "refused connect")}, echo.Echo)
	w.Client("10.0.0.1:80", reads)
	require.NoError(t, w.Run(), "the connect was refused")

	w = sim.New(sim.Options{})
	w.Client("10.0.0.1:80", reads)
	require.ErrorIs(t, w.Run(), syscall.ECONNREFUSED, "nothing listens")
}

func TestPostFromOtherGoroutinePanics(t *testing.T) {
	w := sim.New(sim.Options{})
	var s *act.Scheduler
	_, err := w.Server("server", act.Config{}, func(of *act.Scheduler) error { s = of; return nil })
	require.NoError(t, err)
	said := make(chan any, 1)
	w.At(time.Second, func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { said <- recover() }()
			s.Post(func(*act.Scheduler) {})
		}()
		<-done
	})
	require.NoError(t, w.Run())
	require.Contains(t, fmt.Sprint(<-said), "a goroutine that is not part of the world has woken scheduler 0 or posted to it")
}

// A client is a net.Conn, with deadlines on the world's clock.
func TestClientIsANetConn(t *testing.T) {
	w, _ := worldOf(t, sim.Options{}, echo.Echo)
	w.Client("10.0.0.1:80", func(c *sim.Client) error {
		if err := c.SetReadDeadline(c.Now().Add(20 * time.Minute)); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || w.Now() < 20*time.Minute {
			return fmt.Errorf("at %v: %w", w.Now(), err)
		}
		if c.RemoteAddr().String() != "10.0.0.1:80" || c.LocalAddr().Network() != "tcp" {
			return fmt.Errorf("from %v to %v", c.LocalAddr(), c.RemoteAddr())
		}
		_ = c.SetDeadline(time.Time{})
		if _, err := io.WriteString(c, "hello"); err != nil {
			return err
		}
		if err := c.CloseWrite(); err != nil {
			return err
		}
		all, err := io.ReadAll(c)
		if string(all) != "hello" {
			return fmt.Errorf("%q: %w", all, err)
		}
		return err
	})
	require.NoError(t, w.Run())
}

// A server that survives its faults and then serves no more fails the world, if a client comes after the storm.
func TestClientAfterStorm(t *testing.T) {
	for name, x := range map[string]struct {
		faults sim.Faults
		want   error
	}{
		"nothing happens":   {},
		"a connect fails":   {faults: sim.Faults{}.With(1<<16, "connect timed out")},
		"a client is reset": {sim.Faults{}.With(1<<16, "reset"), syscall.ECONNRESET},
	} {
		tired, served := false, false
		w, _ := worldOf(t, sim.Options{Faults: x.faults}, coro.Serve(func(c *coro.Conn) error {
			_, err := io.ReadFull(c, make([]byte, 10))
			if tired = tired || err != nil; tired {
				c.Under().Abort()
			}
			return err
		}))
		writes := func(c *sim.Client) error {
			c.Sleep(time.Second) // it has been accepted
			_, err := io.WriteString(c, "0123456789")
			return errors.Join(err, reads(c))
		}
		w.Client("10.0.0.1:80", writes)
		w.ClientAfterStorm("10.0.0.1:80", func(c *sim.Client) error {
			served = name != "a connect fails" || w.Now() >= 127*time.Second
			return writes(c)
		})
		require.ErrorIs(t, w.Run(), x.want, name)
		require.True(t, served, name)
	}
}

// A server may shut itself down, and the world checks that it obeys.
func TestServerShutsItselfDown(t *testing.T) {
	quits := func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			t.Scheduler().Group().Shutdown(shutdown.Policy{Time: time.Second, Drop: true})
			return act.Done
		})
	}
	w, v := worldOf(t, sim.Options{}, quits)
	w.Client("10.0.0.1:80", reads)
	require.NoError(t, w.Run())
	require.NoError(t, v.Err())
}

func TestPanicFailsTheWorldUnlessAllowed(t *testing.T) {
	panics := func(*listener.Conn) act.Action {
		return act.Func(func(*act.Task) act.Directive { panic("on purpose") })
	}
	w, _ := worldOf(t, sim.Options{}, panics)
	w.Client("10.0.0.1:80", reads)
	require.ErrorContains(t, w.Run(), "panicked: on purpose")
	w, _ = worldOf(t, sim.Options{Panics: true}, panics)
	w.Client("10.0.0.1:80", reads)
	require.ErrorIs(t, w.Run(), syscall.ECONNRESET)
}

// A planned call comes even when all clients have finished. A call that plans itself again and again does not keep the
// world from ending.
func TestRunWaitsForAt(t *testing.T) {
	mistake := errors.New("must be seen")
	w, _ := worldOf(t, sim.Options{}, echo.Echo)
	w.At(10*time.Second, func() { w.Client("10.0.0.1:80", func(*sim.Client) error { return mistake }) })
	require.ErrorIs(t, w.Run(), mistake)

	w, _ = worldOf(t, sim.Options{}, echo.Echo)
	ticks := 0
	var tick func()
	tick = func() { ticks++; w.At(w.Now()+time.Second, tick) }
	tick()
	w.Client("10.0.0.1:80", func(c *sim.Client) error { return nil })
	require.NoError(t, w.Run())
	require.GreaterOrEqual(t, ticks, 59)

	w, _ = worldOf(t, sim.Options{}, echo.Echo)
	w.At(time.Hour, func() { w.Client("10.0.0.1:80", func(*sim.Client) error { return nil }) })
	w.Client("10.0.0.1:80", func(c *sim.Client) error { return nil })
	require.NoError(t, w.Run(), "an hour is after the storm")
}

func TestMisuse(t *testing.T) {
	require.PanicsWithValue(t, "sim: a World runs once", func() {
		w := sim.New(sim.Options{})
		require.NoError(t, w.Run())
		_ = w.Run()
	})
	require.Panics(t, func() { sim.New(sim.Options{Storm: -1}) })
	w := sim.New(sim.Options{})
	w.Client("nonsense", func(*sim.Client) error { return nil })
	require.Error(t, w.Run())
	w = sim.New(sim.Options{})
	_, err := w.Server("server", act.Config{}, func(*act.Scheduler) error { return io.ErrUnexpectedEOF })
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, w.Run(), "setting up")
}

// A Close or a deadline ends the wait of another strand.
func TestCloseAndDeadlineEndReadOfOtherStrand(t *testing.T) {
	for name, end := range map[string]func(*sim.Client) error{
		"close":    (*sim.Client).Close,
		"deadline": func(c *sim.Client) error { return c.SetReadDeadline(c.Now()) },
	} {
		w, _ := worldOf(t, sim.Options{}, echo.Echo)
		var got error
		w.Client("10.0.0.1:80", func(c *sim.Client) error {
			c.Go(func(c *sim.Client) error { _, got = c.Read(make([]byte, 1)); return nil })
			c.Sleep(time.Second)
			return end(c)
		})
		require.NoError(t, w.Run(), name)
		require.Error(t, got, name)
	}
}

// Two worlds that differ only in their bytes have different histories.
func TestHashCoversBytes(t *testing.T) {
	hash := func(text string) uint64 {
		w, _ := worldOf(t, sim.Options{}, echo.Echo)
		w.Client("10.0.0.1:80", func(c *sim.Client) error { _, err := io.WriteString(c, text); return err })
		require.NoError(t, w.Run())
		return w.Counts().Hash
	}
	require.NotEqual(t, hash("GET a"), hash("GET b"))
}
