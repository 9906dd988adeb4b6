package coro_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

var haltAndDrop = shutdown.Policy{Kind: shutdown.Halt, Drop: true}

// newScheduler returns a scheduler that is closed at the end of the test.
func newScheduler(t testing.TB, cfg act.Config) (*act.Scheduler, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	cfg.Logger = zap.New(core)
	s := act.New(cfg)
	t.Cleanup(func() { _ = s.Close() })
	return s, logs
}

func TestHowABodyEnds(t *testing.T) {
	errNo := errors.New("no")
	for _, row := range []struct {
		name string
		body func(*coro.Co) error
		want string // what is logged, and with which stack
		in   string
	}{
		{"nil", func(*coro.Co) error { return nil }, "", ""},
		{"an error", func(*coro.Co) error { return errNo }, "no", ""},
		{"a panic", func(*coro.Co) error { boom(); return nil }, "panic: boom", "coro_test.boom"},
		{"a panic in a later turn", func(co *coro.Co) error { _ = co.Yield(); boom(); return nil }, "panic: boom", "coro_test.boom"},
		{"a panic of nil", func(*coro.Co) error { panic(nil) }, "panic: panic called with nil argument", "coro_test"},
		{"a panic of its outermost deferred function", func(*coro.Co) error { defer boom(); return nil }, "panic: boom", "coro_test.boom"},
		{"Goexit", func(*coro.Co) error { leave(); return nil }, "panic: coro: runtime.Goexit in the body", "coro_test.leave"},
		{"Goexit in a later turn", func(co *coro.Co) error { _ = co.Yield(); leave(); return nil }, "panic: coro: runtime.Goexit in the body", "coro_test.leave"},
		{"Goexit of its outermost deferred function", func(*coro.Co) error { defer leave(); return nil }, "panic: coro: runtime.Goexit in the body", "coro_test.leave"},
		{"Goexit, and then a panic of a deferred function", func(*coro.Co) error { defer boom(); leave(); return nil }, "panic: boom", "coro_test.boom"},
		{"Goexit, and then a panic that is recovered", func(*coro.Co) error {
			defer func() { _ = recover() }()
			defer boom()
			leave()
			return nil
		}, "panic: coro: runtime.Goexit in the body", ""},
		{"a panic, and then another", func(*coro.Co) error { defer boom(); panic("first") }, "panic: boom", "coro_test.boom"},
		{"a panic in an action that it does", func(co *coro.Co) error {
			return co.Do(act.Func(func(*act.Task) act.Directive { boom(); return act.Done }))
		}, "panic: boom", "coro_test.boom"},
		{"a panic that it recovers", func(co *coro.Co) (err error) {
			defer func() { err = fmt.Errorf("%v", recover()) }()
			boom()
			return nil
		}, "boom", ""},
		{"a panic in a coroutine that it does", func(co *coro.Co) error {
			return co.Do(coro.New(func(*coro.Co) error { boom(); return nil }))
		}, "panic: boom", "coro_test.boom"},
		{"an action that fails without saying why", func(co *coro.Co) error {
			return co.Do(act.Func(func(*act.Task) act.Directive { return act.Failed }))
		}, "failed without saying why", ""},
		{"an action without a verdict", func(co *coro.Co) error {
			return co.Do(act.Func(func(*act.Task) act.Directive { return 0 }))
		}, "panic: act: an action returned Directive(0), which is not a valid Directive: return Yield, Wait, Async, Done or Failed", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, logs := newScheduler(t, act.Config{})
			other := 0
			s.Spawn(coro.New(row.body))
			s.Spawn(coro.New(func(co *coro.Co) error {
				for other = range 5 {
					_ = co.Yield()
				}
				return nil
			}))
			require.NoError(t, s.Run())
			require.Equal(t, 4, other, "disturbs nobody")
			if row.want == "" {
				require.Zero(t, logs.Len())
				return
			}
			require.Equal(t, 1, logs.Len(), logs.All())
			fields := logs.All()[0].ContextMap()
			require.Equal(t, row.want, fields["error"])
			require.Contains(t, fields["task"], "TestHowABodyEnds")
			if row.in != "" {
				require.Contains(t, fields["stack"], row.in)
			}
		})
	}
}

func boom()  { panic("boom") }
func leave() { runtime.Goexit() }

func TestAThousandAtOnceLeaveNoneBehind(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	before := runtime.NumGoroutine()
	most := uint64(0)
	for range 1000 {
		s.Spawn(coro.New(func(co *coro.Co) error {
			most = max(most, servertest.CountsOf(s)["coroutines"])
			return co.Yield()
		}))
	}
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		counts := servertest.CountsOf(s)
		if counts["coroutines"] > 0 {
			return act.Yield
		}
		require.EqualValues(panicking{}, 256, counts["coroutines_kept"])
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Zero(t, logs.Len(), logs.All())
	require.EqualValues(t, 1000, most)
	counts := servertest.CountsOf(s)
	require.Zero(t, counts["coroutines"]+counts["coroutines_kept"])
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// panicking is for requirements on the goroutine of a coroutine or a scheduler, which FailNow must not end.
type panicking struct{}

func (panicking) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (panicking) FailNow()                          { panic("a requirement is not met") }

func forever(t *act.Task) act.Directive {
	t.Waker()
	return act.Wait
}

func TestAStoppedBodyThatGoesOnIsUnwoundAtItsSecondCall(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var log []string
	s.Spawn(coro.New(func(co *coro.Co) error {
		defer func() { log = append(log, "outer") }()
		defer func() {
			for {
				log = append(log, "again")
				_ = co.Yield()
			}
		}()
		for {
			log = append(log, fmt.Sprint(co.Sleep(time.Hour)))
		}
	}))
	_, err := s.Step(1)
	require.NoError(t, err)
	_ = s.Close()
	stopped := coro.ErrStopped.Error()
	require.Equal(t, []string{stopped, stopped, "again", "outer"}, log)
	require.Zero(t, logs.Len(), logs.All())
}

func TestAnErrorOrPanicOfAStoppedBodyIsSeen(t *testing.T) {
	for name, row := range map[string]struct {
		body func() error
		want string
	}{
		"an error":     {func() error { return errors.New("not rolled back") }, "not rolled back"},
		"wrapped":      {func() error { return fmt.Errorf("reading: %w", coro.ErrStopped) }, ""},
		"a panic":      {func() error { boom(); return nil }, "panic: boom"},
		"a Goexit":     {func() error { leave(); return nil }, "panic: coro: runtime.Goexit in the body"},
		"nothing":      {func() error { return nil }, ""},
		"its deferred": {func() error { defer boom(); return nil }, "panic: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := newScheduler(t, act.Config{})
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s.Spawn(coro.New(func(co *coro.Co) error {
				_ = co.Sleep(time.Hour)
				return row.body()
			}))
			s.Spawn(coro.New(func(co *coro.Co) error { return co.Sleep(time.Hour) }))
			_, err := s.Step(2)
			require.NoError(t, err)
			require.Error(t, s.Close())
			if row.want == "" {
				require.Zero(t, logs.Len(), logs.All())
				return
			}
			require.Equal(t, 1, logs.Len(), logs.All())
			require.Equal(t, row.want, logs.All()[0].ContextMap()["error"])
		})
	}
}

func TestAStoppedBodyThatOnlyComputesIsReported(t *testing.T) {
	defer coro.WithPatience(time.Millisecond)()
	s, logs := newScheduler(t, act.Config{})
	s.Spawn(coro.New(func(co *coro.Co) error { return co.Sleep(time.Hour) }))
	s.Shutdown(haltAndDrop)
	s.Spawn(act.Func(func(*act.Task) act.Directive { return act.Done }))
	require.Error(t, s.Run())
	require.Zero(t, logs.Len(), "an order before the first turn stops no body")

	s.Spawn(coro.New(func(co *coro.Co) error {
		s.Shutdown(haltAndDrop)
		err := co.Sleep(time.Hour)
		for begun := time.Now(); logs.Len() == 0 && time.Since(begun) < servertest.Timeout; {
		}
		return err
	}))
	require.Error(t, s.Run())
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "a stopped coroutine does not end and blocks its thread", logs.All()[0].Message)
	require.Contains(t, logs.All()[0].ContextMap()["task"], "OnlyComputes")
}

func TestCoroutinesStayOnTheirThread(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	elsewhere := func(f func() error) error {
		result := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: surely another thread
			result <- f()
		}()
		return <-result
	}
	over := false
	s.Spawn(coro.New(func(co *coro.Co) error {
		for !over {
			_ = co.Yield()
		}
		return nil
	}))
	_, err := s.Step(1)
	require.NoError(t, err)
	require.ErrorContains(t, elsewhere(s.Run), "another thread")
	require.ErrorContains(t, elsewhere(s.Close), "another thread")
	require.ErrorContains(t, elsewhere(func() error { _, err := s.Step(1); return err }), "another thread")
	over = true
	require.NoError(t, s.Run())
	s.Spawn(coro.New(func(co *coro.Co) error { return co.Yield() }))
	require.NoError(t, elsewhere(s.Run), "with no coroutine left it may move")
	require.NoError(t, elsewhere(s.Close))
}

func TestAGoexitOfAnActionStopsTheCoroutinesOfItsThread(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 1, Logger: zap.NewNop()})
	var got error
	err := g.Run(t.Context(), func(s *act.Scheduler) error {
		s.Spawn(coro.New(func(co *coro.Co) error { got = co.Sleep(time.Hour); return got }))
		s.Spawn(act.Seq(&listener.Sleep{For: time.Millisecond}, act.Func(func(*act.Task) act.Directive { leave(); return act.Done })))
		return nil
	})
	require.ErrorContains(t, err, "runtime.Goexit")
	require.ErrorIs(t, got, coro.ErrStopped)
	require.Error(t, g.Close())
}

func TestMisusePanicsWithASentence(t *testing.T) {
	const others = "coro: a Co was used outside of its own body"
	var itself act.Action
	itself = coro.New(func(*coro.Co) error { return itself.(interface{ Close() error }).Close() })
	for name, row := range map[string]struct {
		body func(*coro.Co) error
		says string
	}{
		"Do":                {func(co *coro.Co) error { return co.Do(nil) }, "coro: Do of a nil action"},
		"Await":             {func(co *coro.Co) error { return co.WaitUntil(nil) }, "coro: WaitUntil of a nil function"},
		"Offload":           {func(co *coro.Co) error { _, err := coro.Offload[int](co, nil); return err }, "coro: Offload of a nil function"},
		"New":               {func(*coro.Co) error { coro.New(nil); return nil }, "coro: New without a function"},
		"Serve":             {func(*coro.Co) error { coro.Serve(nil); return nil }, "coro: Serve without a function"},
		"a Close of itself": {func(co *coro.Co) error { return co.Do(itself) }, "coro: a body closed its own coroutine"},
		"the Co of the body around": {func(co *coro.Co) error {
			return co.Do(coro.New(func(*coro.Co) error { return co.Yield() }))
		}, others},
		"the Co of another task": {func(co *coro.Co) error {
			co.Scheduler().Spawn(act.Func(func(*act.Task) act.Directive { _ = co.Yield(); return act.Done }))
			return co.Sleep(time.Millisecond)
		}, others},
		"a second Spawn": {func(co *coro.Co) error {
			co.Scheduler().Spawn(co.Task().Action())
			return co.Sleep(time.Millisecond)
		}, "coro: a coroutine was spawned twice: a further task needs one of its own\n" + coro.ErrStopped.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := newScheduler(t, act.Config{})
			s.Spawn(coro.New(row.body))
			require.NoError(t, s.Run())
			require.Equal(t, "panic: "+row.says, strings.Join(failures(logs.All()), "\n"))
		})
	}
}

func TestAFinishedCoroutineAnswersItsVerdictAgain(t *testing.T) {
	s, logs := newScheduler(t, act.Config{})
	errNo := errors.New("no")
	runs := 0
	good := coro.New(func(*coro.Co) error { runs++; return nil })
	bad := coro.New(func(*coro.Co) error { runs++; return errNo })
	never := coro.New(func(*coro.Co) error { runs++; return nil })
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		for range 3 {
			require.Equal(panicking{}, act.Done, good.Act(t))
			require.Equal(panicking{}, act.Failed, bad.Act(t))
			require.Equal(panicking{}, errNo, t.Err())
		}
		require.NoError(panicking{}, never.(interface{ Close() error }).Close())
		require.Equal(panicking{}, act.Failed, never.Act(t))
		require.Equal(panicking{}, coro.ErrStopped, t.Err())
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, 2, runs)
	require.Zero(t, logs.Len(), logs.All())
}

// The unwinding at the second call once skipped the function that was going to close.
func TestAStoppedBodyKeepsNoConnectionThatItHasDialled(t *testing.T) {
	for name, end := range map[string]func(co *coro.Co, c *coro.Conn) error{
		"by a time-out, and cleaning up for too long": func(co *coro.Co, c *coro.Conn) error {
			defer func() {
				for range 3 {
					_, _ = c.Write([]byte("bye"))
				}
				_ = c.Close()
			}()
			_, err := c.Read(make([]byte, 1))
			return err
		},
		"by a time-out, and not cleaning up": func(co *coro.Co, c *coro.Conn) error {
			_, err := c.Read(make([]byte, 1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := serve(t, echo)
			l := bench(t)
			p := play(l, func(co *coro.Co) error {
				for range 3 {
					err := co.Do(listener.Within(20*time.Millisecond, coro.New(func(co *coro.Co) error {
						c, err := coro.Dial(co, v.address(), listener.Limits{})
						if err != nil {
							return err
						}
						return end(co, c)
					})))
					require.ErrorIs(panicking{}, err, os.ErrDeadlineExceeded)
				}
				return nil
			})
			require.NoError(t, p.end()) // and bench counts the descriptors
			v.drain()
		})
	}
}

func TestAFilterCanRefuseWhatABodyHasDialled(t *testing.T) {
	v := serve(t, echo)
	l := bench(t)
	refused := errors.New("refused")
	p := play(l, func(co *coro.Co) error {
		ready := func(*listener.Conn) act.Action { return nil }
		no := func(*listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive { return t.Fail(refused) })
		}
		c, err := coro.Dial(co, v.address(), listener.Limits{}, ready, no)
		require.Nil(panicking{}, c)
		return err
	})
	var wrong *net.OpError
	require.ErrorAs(t, p.end(), &wrong)
	require.Equal(t, refused, wrong.Err)
	v.drain() // which waits for the server to see that the client has gone
}

func TestABodyThatPanicsKeepsNoConnectionThatItHasDialled(t *testing.T) {
	v := serve(t, echo)
	s, logs := newScheduler(t, act.Config{})
	s.Spawn(coro.New(func(co *coro.Co) error {
		_, err := coro.Dial(co, v.address(), listener.Limits{})
		require.NoError(panicking{}, err)
		panic("boom")
	}))
	require.NoError(t, s.Run())
	require.Equal(t, []string{"panic: boom"}, failures(logs.All()))
	v.drain() // which waits for the server to see that the client has gone
}

func TestADeferredWaitIsRefused(t *testing.T) {
	var under *listener.Conn
	for name, wait := range map[string]func(co *coro.Co) error{
		"Yield":   (*coro.Co).Yield,
		"Sleep":   func(co *coro.Co) error { return co.Sleep(0) },
		"Await":   func(co *coro.Co) error { return co.WaitUntil(func(*act.Task) bool { return true }) },
		"Unblock": func(co *coro.Co) error { return co.Unblock(nil) },
		"Unblock what waits": func(co *coro.Co) error {
			_, empty := listener.NewMailbox[int](1).Take()
			return co.Unblock(empty)
		},
		"a scope": func(co *coro.Co) error { return co.UntilOrder(func() error { return nil }) },
		"Read": func(co *coro.Co) error {
			_, err := co.Conn(under).Read(make([]byte, 1))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			under = listener.NewConn(l.S, &firehose{}, listener.Limits{})
			var got error
			p := play(l, func(co *coro.Co) error {
				defer func() { got = wait(co) }()
				return co.Sleep(time.Hour)
			})
			_, err := l.S.Step(1)
			require.NoError(t, err)
			require.Error(t, l.S.Close())
			require.True(t, p.over)
			require.ErrorIs(t, got, coro.ErrStopped)
		})
	}
}

func TestHowAServedConnectionEnds(t *testing.T) {
	for _, row := range []struct {
		name   string
		body   func(*coro.Conn) error
		logged string
		reset  bool
	}{
		{"nil", func(*coro.Conn) error { return nil }, "", false},
		{"io.EOF", func(*coro.Conn) error { return io.EOF }, "", false},
		{"an error", func(*coro.Conn) error { return errWhy }, "because", false},
		{"an error around io.EOF", func(*coro.Conn) error { return fmt.Errorf("early: %w", io.EOF) }, "early: EOF", false},
		{"what a peer that has gone leaves", func(*coro.Conn) error { return syscall.ECONNRESET }, "", false},
		{"a panic of a later turn", func(c *coro.Conn) error { _ = c.Co().Yield(); boom(); return nil }, "panic: boom", true},
		{"Close of its own", func(c *coro.Conn) error { return c.Close() }, "", false},
		{"a panic after a Close", func(c *coro.Conn) error { _ = c.Close(); boom(); return nil }, "panic: boom", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := serve(t, func(c *coro.Conn) error {
				if _, err := io.WriteString(c, "hello"); err != nil {
					return err
				}
				if _, err := c.Read(make([]byte, 1)); err != nil {
					return err
				}
				return row.body(c)
			})
			for range 2 { // the scheduler lives on
				c := v.dial()
				servertest.Send(t, c, "?")
				got, err := io.ReadAll(c)
				require.Equal(t, row.reset, errors.Is(err, syscall.ECONNRESET), err)
				if !row.reset {
					require.Equal(t, "hello", string(got))
				}
				_ = c.Close()
			}
			v.Group.Shutdown(servertest.Drain)
			require.NoError(t, v.End())
			if row.logged == "" {
				require.Empty(t, v.failures())
				return
			}
			require.Equal(t, []string{row.logged, row.logged}, v.failures())
			require.Contains(t, v.Logs.FilterMessage("a task failed").All()[0].ContextMap()["task"], "TestHowAServedConnectionEnds",
				"the body is named, and not what Serve makes of it")
		})
	}
}

func TestABodyIsNamedAfterItsFunction(t *testing.T) {
	a := coro.Serve(echo)(new(listener.Conn))
	require.True(t, strings.HasSuffix(act.Name(a), "coro_test.echo"), act.Name(a))
	require.Contains(t, act.Name(coro.New(func(*coro.Co) error { return nil })), "TestABodyIsNamed")
}
