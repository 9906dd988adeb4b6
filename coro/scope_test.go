package coro_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

var (
	errWhy = errors.New("because")
)

// waits are calls that wait for ever unless a scope ends them.
func waits(co *coro.Co, c *coro.Conn) map[string]func() error {
	return map[string]func() error{
		"Sleep":   func() error { return co.Sleep(time.Hour) },
		"Yield":   func() error { return yielding(co) },
		"Await":   func() error { return co.WaitUntil(func(*act.Task) bool { return false }) },
		"Do":      func() error { return co.Do(act.Func(forever)) },
		"Read":    func() error { _, err := c.Read(make([]byte, 1)); return err },
		"Write":   func() error { return full(c) },
		"WriteTo": func() error { _, err := io.Copy(c, c); return err },
		"copying": func() error { _, err := io.Copy(io.Discard, c); return err },
		"Unblock": func() error {
			for {
				_, err := c.Under().Peek(1)
				if err := co.Unblock(err); err != nil {
					return err
				}
			}
		},
		"Value":         func() error { _, err := coro.Value(co, future.New[int](co.Scheduler())); return err },
		"a scope in it": func() error { return co.Within(time.Hour, func() error { return co.Sleep(time.Hour) }) },
	}
}

func yielding(co *coro.Co) error {
	for {
		if err := co.Yield(); err != nil {
			return err
		}
	}
}

func TestAScopeCutsShortWhateverWaitsInIt(t *testing.T) {
	for scope, end := range map[string]func(co *coro.Co, f func() error) error{
		"Within": func(co *coro.Co, f func() error) error { return co.Within(5*time.Millisecond, f) },
		"WithContext": func(co *coro.Co, f func() error) error {
			ctx, cancel := context.WithTimeout(co.Context(), 5*time.Millisecond)
			defer cancel()
			return co.WithContext(ctx, f)
		},
		"UntilOrder": func(co *coro.Co, f func() error) error {
			s := co.Scheduler()
			time.AfterFunc(5*time.Millisecond, func() { s.Shutdown(servertest.Drain) })
			return co.UntilOrder(f)
		},
	} {
		for name := range waits(nil, nil) {
			t.Run(scope+" and "+name, func(t *testing.T) {
				l := bench(t)
				p, _ := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
					defer c.Under().Abort()
					co := c.Co()
					err := end(co, waits(co, c)[name])
					require.NoError(panicking{}, co.Sleep(time.Millisecond), "behind it all is well")
					return err
				})
				err := p.end()
				switch scope {
				case "Within":
					late(t, err)
					require.EqualError(t, err, "coro: not finished within 5ms: i/o timeout")
				case "WithContext":
					require.ErrorIs(t, err, context.DeadlineExceeded)
				case "UntilOrder":
					require.ErrorIs(t, err, coro.ErrOrdered)
				}
			})
		}
	}
}

func TestACallInAScopeThatHasEndedIsRefused(t *testing.T) {
	past, cancel := context.WithCancelCause(context.Background())
	cancel(errWhy)
	for name, end := range map[string]func(co *coro.Co, f func() error) error{
		"Within": func(co *coro.Co, f func() error) error {
			return co.Within(-1, func() error { _ = yielding(co); return f() })
		},
		"WithContext": func(co *coro.Co, f func() error) error { return co.WithContext(past, f) },
		"UntilOrder": func(co *coro.Co, f func() error) error {
			co.Scheduler().Shutdown(servertest.Drain)
			return errors.Join(co.Yield(), co.UntilOrder(f))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			p, peer := converse(l, "tcp", listener.Limits{}, func(c *coro.Conn) error {
				co := c.Co()
				return end(co, func() error {
					want := co.Yield()
					require.Error(panicking{}, want)
					for name, call := range waits(co, c) {
						require.Equal(panicking{}, want, call(), name)
					}
					closed := &closing{}
					require.Equal(panicking{}, want, co.Do(closed))
					require.Equal(panicking{}, closing{0, 1}, *closed, "closed, and not begun")
					_, err := coro.Dial(co, "127.0.0.1:1", listener.Limits{})
					require.Equal(panicking{}, want, err)
					_, err = coro.Offload(co, func() (int, error) { panic("called") })
					require.Equal(panicking{}, want, err)
					require.Equal(panicking{}, want, co.WithContext(context.Background(), func() error { panic("called") }))
					require.Equal(panicking{}, want, co.UntilOrder(func() error { panic("called") }))
					return nil
				})
			})
			servertest.Send(t, peer, "what came is not read")
			require.NoError(t, p.end())
		})
	}
}

// closing is an action that counts its calls.
type closing struct{ acts, closes int }

func (c *closing) Act(*act.Task) act.Directive { c.acts++; return act.Yield }
func (c *closing) Close() error                { c.closes++; return nil }

// attended is a context that counts the waiters for its end.
type attended struct {
	context.Context
	done    chan struct{}
	waiting int
}

func (a *attended) Done() <-chan struct{} { return a.done } // package context knows its own

func (a *attended) AfterFunc(func()) (stop func() bool) {
	a.waiting++
	return func() bool { a.waiting--; return true }
}

func TestWithContextIsForgottenByItsContext(t *testing.T) {
	l := bench(t)
	ctx := &attended{context.Background(), make(chan struct{}), 0}
	p := play(l, func(co *coro.Co) error {
		return co.WithContext(ctx, func() error {
			require.Equal(panicking{}, 1, ctx.waiting)
			return co.Yield()
		})
	})
	require.NoError(t, p.end())
	require.Zero(t, ctx.waiting)
}

func TestTheOuterScopeIsTheReason(t *testing.T) {
	canceled, cancel := context.WithCancelCause(context.Background())
	cancel(errWhy)
	around, end := context.WithCancelCause(context.Background())
	l := bench(t)
	var log trace
	p := play(l, func(co *coro.Co) error {
		outer := co.WithContext(around, func() error {
			log.add("inner: %v.", co.Within(time.Millisecond, func() error { return co.Sleep(time.Hour) }))
			log.add("cancelled: %v.", co.WithContext(canceled, func() error { return co.Sleep(time.Hour) }))
			return co.WithContext(canceled, func() error {
				end(errors.New("the end of it all"))
				return co.Yield()
			})
		})
		log.add("outer: %v.", outer)
		log.add("none: %v.", co.Yield())
		return nil
	})
	require.NoError(t, p.end())
	require.Equal(t, "inner: coro: not finished within 1ms: i/o timeout. cancelled: because. "+
		"outer: the end of it all. none: <nil>.",
		log.String())
}

// A result that comes in the turn in which the time is over is not lost.
func TestNothingIsLostAtTheEndOfAScope(t *testing.T) {
	end := func() {}
	for name, scope := range map[string]func(co *coro.Co, f func() error) error{
		"Within": func(co *coro.Co, f func() error) error { return co.Within(time.Millisecond, f) },
		"WithContext": func(co *coro.Co, f func() error) error {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			end = cancel
			return co.WithContext(ctx, f)
		},
		"UntilOrder": func(co *coro.Co, f func() error) error { return co.UntilOrder(f) },
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			came, begun := false, false
			var waker act.Waker
			p := play(l, func(co *coro.Co) error {
				return scope(co, func() error {
					err := co.WaitUntil(func(t *act.Task) bool { waker, begun = t.Waker(), true; return came })
					require.Error(panicking{}, co.Yield(), "it has ended")
					return err
				})
			})
			l.Turn(func(task *act.Task) {
				require.True(panicking{}, begun)
				time.Sleep(5 * time.Millisecond)
				end()
				task.Scheduler().Shutdown(servertest.Drain)
				came = true
				waker.Wake()
			})
			require.NoError(t, p.end())
		})
	}
}

func TestAScopeEndsWhatTheBodyDoes(t *testing.T) {
	l := bench(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	var inner error
	p := play(l, func(co *coro.Co) error {
		return co.WithContext(ctx, func() error {
			return co.Do(act.All(act.Func(forever), coro.New(func(co *coro.Co) error {
				cancel(errWhy) // now that all have begun
				inner = co.Within(time.Hour, func() error { return co.Sleep(time.Hour) })
				return inner
			})))
		})
	})
	require.Equal(t, errWhy, p.end())
	require.ErrorIs(t, inner, coro.ErrStopped, "the scopes of who waits for it are not its own")
}

// An action that has offloaded a function belongs to it until it has returned.
func TestAScopeWaitsForAnOffloadedFunction(t *testing.T) {
	for name, early := range map[string]bool{"that ends meanwhile": false, "that ends in the same turn": true} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			returned := false
			p := play(l, func(co *coro.Co) error {
				ctx, cancel := context.WithCancelCause(context.Background())
				return co.WithContext(ctx, func() error {
					first := true
					err := co.Do(act.Func(func(t *act.Task) act.Directive {
						if !first {
							return act.Done
						}
						if first = false; early {
							cancel(errWhy)
						}
						return t.Offload(func() {
							cancel(errWhy)
							time.Sleep(5 * time.Millisecond)
							returned = true
						})
					}))
					require.True(panicking{}, returned)
					require.NoError(panicking{}, err, "it was done before anybody looked")
					return co.Yield()
				})
			})
			require.Equal(t, errWhy, p.end())
		})
	}
}

func TestABodyThatIgnoresTheEndOfAScopeLetsOtherTasksRun(t *testing.T) {
	for name, call := range map[string]func(co *coro.Co) error{
		"Yield":         (*coro.Co).Yield,
		"Sleep":         func(co *coro.Co) error { return co.Sleep(time.Hour) },
		"Await":         func(co *coro.Co) error { return co.WaitUntil(func(*act.Task) bool { return false }) },
		"Await what is": func(co *coro.Co) error { return co.WaitUntil(func(*act.Task) bool { return true }) },
		"Do":            func(co *coro.Co) error { return co.Do(act.Func(forever)) },
		"Unblock":       func(co *coro.Co) error { return co.Unblock(nil) },
		"Unblock what waits": func(co *coro.Co) error {
			_, empty := listener.NewMailbox[int](1).Take()
			return co.Unblock(empty)
		},
		"Within":     func(co *coro.Co) error { return co.Within(time.Hour, func() error { return nil }) },
		"UntilOrder": func(co *coro.Co) error { return co.UntilOrder(func() error { return nil }) },
		"WithContext": func(co *coro.Co) error {
			return co.WithContext(context.Background(), func() error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := steppedScheduler(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(errWhy)
			var log trace
			s.Spawn(coro.New(func(co *coro.Co) error {
				return co.WithContext(ctx, func() error {
					for {
						if err := call(co); !errors.Is(err, errWhy) {
							return err
						}
						log.add("A")
					}
				})
			}))
			s.Spawn(act.Func(func(*act.Task) act.Directive { log.add("B"); return act.Yield }))
			_, err := s.Step(6)
			require.NoError(t, err)
			require.Equal(t, "B A B A B", log.String())
			require.Error(t, s.Close())
			require.Equal(t, "B A B A B", log.String(), "and is stopped as ever")
			require.Zero(t, logs.Len(), logs.All())
		})
	}
}

func TestAPanicLeavesItsScopesAndTheirTimers(t *testing.T) {
	l := bench(t)
	p := play(l, func(co *coro.Co) error {
		func() {
			defer func() { require.Equal(panicking{}, "boom", recover()) }()
			_ = co.Within(time.Millisecond, func() error {
				return co.Within(time.Hour, func() error { boom(); return nil })
			})
		}()
		_, armed := co.Scheduler().NextDeadline()
		require.False(panicking{}, armed)
		return errors.Join(co.Sleep(5*time.Millisecond), co.Yield())
	})
	require.NoError(t, p.end())
}

// Connections that wait for a request end in the window of an order, unless a second order has none. The first request of a
// connection may be on its way.
func TestAWaitForARequestIsCutShortWhenTheConnectionIsToEnd(t *testing.T) {
	const ms = time.Millisecond
	type state struct{ idle, never bool } // over
	for name, row := range map[string]struct {
		terms  shutdown.Policy
		second bool
		want   map[time.Duration]state // by the time after the order
	}{
		"at once": {shutdown.Policy{Time: time.Hour, Drop: true}, false,
			map[time.Duration]state{0: {true, false}, 900 * ms: {true, false}, 1100 * ms: {true, true}}},
		"in a window": {shutdown.Policy{Time: time.Hour, Spread: 400 * ms, Drop: true}, false,
			map[time.Duration]state{0: {false, false}, 190 * ms: {false, false}, 410 * ms: {true, false}, 1100 * ms: {true, true}}},
		"a second order has no window": {shutdown.Policy{Time: 10 * time.Hour, Spread: time.Hour}, true,
			map[time.Duration]state{0: {true, false}, 1100 * ms: {true, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &servertest.Clock{}
			clock.Pass(time.Second)
			l := timed(t, clock)
			var got state
			wait := func(over *bool) (begun func() bool, peer net.Conn) {
				turns := 0
				under, peer := l.Conn("tcp", listener.Limits{})
				l.S.Spawn(coro.Serve(func(c *coro.Conn) error {
					defer func() { *over = true }()
					for {
						turns++
						if err := c.Co().UntilOrder(func() error { _, err := c.Read(make([]byte, 1)); return err }); err != nil {
							return nil
						}
					}
				})(under))
				return func() bool { return turns == 2 }, peer
			}
			begun, peer := wait(&got.idle)
			servertest.Send(t, peer, "x")
			l.Until("its first request", begun)
			wait(&got.never)
			l.Turn(func(*act.Task) {})
			l.S.Shutdown(row.terms)
			if row.second {
				l.Turn(func(*act.Task) {})
				l.S.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
			}
			begin := clock.Monotonic()
			for _, at := range slices.Sorted(maps.Keys(row.want)) {
				clock.Pass(begin + at - clock.Monotonic())
				for range 5 {
					l.Turn(func(*act.Task) {})
				}
				require.Equal(t, row.want[at], got, "after %v", at)
			}
		})
	}
}
