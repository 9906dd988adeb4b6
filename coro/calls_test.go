package coro_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

func TestWhatOffloadReturns(t *testing.T) {
	for _, row := range []struct {
		name string
		f    func() (string, error)
		want string
	}{
		{"a value", func() (string, error) { return "value", nil }, "value, <nil>"},
		{"an error", func() (string, error) { return "", errWhy }, ", because"},
		{"both", func() (string, error) { return "part", errWhy }, "part, because"},
		{"a panic", func() (string, error) { boom(); return "", nil }, ", panic: boom"},
		{"a Goexit", func() (string, error) { leave(); return "", nil }, ", runtime.Goexit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := bench(t)
			got := ""
			p := play(l, func(co *coro.Co) error {
				value, err := coro.Offload(co, row.f)
				got = fmt.Sprintf("%v, %v", value, err)
				return co.Sleep(time.Millisecond)
			})
			require.NoError(t, p.end())
			require.Equal(t, row.want, got)
		})
	}
}

// The function goes on and hears of the end from its context.
func TestAnInterruptedOffloadLosesItsResult(t *testing.T) {
	for name, interrupted := range map[string]func(co *coro.Co, f func() (int, error)) error{
		"by a scope": func(co *coro.Co, f func() (int, error)) error {
			return co.Within(time.Millisecond, func() error { _, err := coro.Offload(co, f); return err })
		},
		"by the end of the body": func(co *coro.Co, f func() (int, error)) error {
			return co.Do(act.First(coro.New(func(co *coro.Co) error { return co.Sleep(time.Millisecond) }),
				coro.New(func(co *coro.Co) error { _, err := coro.Offload(co, f); return err })))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			ended := make(chan error, 1)
			p := play(l, func(co *coro.Co) error {
				ctx := co.Context()
				require.Same(panicking{}, ctx, co.Context())
				return interrupted(co, func() (int, error) {
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return 1, nil
				})
			})
			_ = p.end()
			require.Equal(t, coro.ErrStopped, servertest.Receive(t, ended))
		})
	}
}

func TestTheContextOfABodyEndsWithIt(t *testing.T) {
	for name, end := range map[string]func(){"": func() {}, " in a panic": boom, " in a Goexit": leave} {
		t.Run("it ends"+name, func(t *testing.T) {
			s, _ := steppedScheduler(t)
			var ctx context.Context
			s.Spawn(coro.New(func(co *coro.Co) error {
				ctx = co.Context()
				require.NoError(panicking{}, co.Yield())
				require.NoError(panicking{}, ctx.Err())
				end()
				return nil
			}))
			require.NoError(t, s.Run())
			require.Equal(t, coro.ErrStopped, context.Cause(ctx))
		})
	}
}

func TestDoClosesWhatItHasDone(t *testing.T) {
	l := bench(t)
	p := play(l, func(co *coro.Co) error {
		for _, d := range []act.Directive{act.Done, act.Failed} {
			closed := false
			err := co.Do(&ending{d, &closed, nil})
			require.Equal(panicking{}, d == act.Failed, err != nil)
			require.True(panicking{}, closed)
		}
		return co.Do(&ending{act.Done, new(bool), errWhy})
	})
	require.NoError(t, p.end(), "the error of a Close is nobody's")
	require.Equal(t, 1, l.Logs.FilterMessage("closing failed").Len())
}

// ending is an action that ends at once.
type ending struct {
	d      act.Directive
	closed *bool
	err    error
}

func (e *ending) Act(*act.Task) act.Directive { return e.d }
func (e *ending) Close() error                { *e.closed = true; return e.err }

// told records an order.
type told struct{ log *trace }

func (told) Act(t *act.Task) act.Directive {
	if t.Order() != nil {
		return act.Done
	}
	t.Waker()
	return act.Wait
}
func (x told) Stop(*act.Task, shutdown.Order) { x.log.add("told") }

func TestAnOrderIsPassedToTheActionOfDo(t *testing.T) {
	l := bench(t)
	var log trace
	p := play(l, func(co *coro.Co) error { return co.Do(coro.New(func(co *coro.Co) error { return co.Do(told{&log}) })) })
	l.For(0)
	require.Empty(t, log.String())
	l.S.Shutdown(servertest.Drain)
	require.NoError(t, p.end())
	require.Equal(t, "told", log.String())
}

func TestAnOrderIsNotPassedToAnActionThatDoHasEnded(t *testing.T) {
	l := bench(t)
	var log trace
	over := false
	p := play(l, func(co *coro.Co) error {
		_ = co.Within(time.Millisecond, func() error { return co.Do(told{&log}) })
		over = true
		return co.WaitUntil(func(*act.Task) bool { return co.Order() != nil }) // an order wakes everybody
	})
	l.Until("the end of the scope", func() bool { return over })
	l.S.Shutdown(servertest.Drain)
	require.NoError(t, p.end())
	require.Empty(t, log.String())
}

// slow offloads a function and records when it is closed.
type slow struct {
	release chan bool
	log     chan string
}

func (x *slow) Act(t *act.Task) act.Directive {
	return t.Offload(func() { <-x.release; x.log <- "returns" })
}
func (x *slow) Close() error { x.log <- "closed"; return nil }

// The end of the body does not close an action that has offloaded a function.
func TestWhatHasOffloadedIsClosedWhenTheFunctionHasReturned(t *testing.T) {
	l := bench(t)
	x := &slow{make(chan bool), make(chan string, 3)}
	var got error
	l.S.Spawn(coro.New(func(co *coro.Co) error {
		got = co.Do(x)
		x.log <- "stopped"
		return got
	}))
	_, err := l.S.Step(1)
	require.NoError(t, err)
	require.Error(t, l.S.Close())
	require.ErrorIs(t, got, coro.ErrStopped)
	close(x.release)
	require.Equal(t, "stopped", servertest.Receive(t, x.log))
	require.Equal(t, "returns", servertest.Receive(t, x.log))
	require.Equal(t, "closed", servertest.Receive(t, x.log))
}
