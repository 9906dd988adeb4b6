package coro_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
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

func TestOtherTasksRunWhileAnOffloadBlocks(t *testing.T) {
	l := bench(t)
	release := make(chan int)
	p := play(l, func(co *coro.Co) error {
		n, err := coro.Offload(co, func() (int, error) { return <-release, nil })
		require.Equal(panicking{}, 7, n)
		return err
	})
	others := play(l, func(co *coro.Co) error { release <- 7; return nil }) // or nobody would take it
	require.NoError(t, p.end())
	require.NoError(t, others.end())
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

// hold keeps Run from returning without a task.
func hold(s *act.Scheduler) error {
	s.Hold(1)
	return nil
}

func TestValueIsTheOutcomeOfAFuture(t *testing.T) {
	for _, row := range []struct {
		name    string
		resolve func(co *coro.Co, f *future.Future[string])
		want    string
		within  time.Duration // 0: an hour
	}{
		{"resolved before", func(_ *coro.Co, f *future.Future[string]) { _ = f.Resolve("value") }, "value, <nil>", 0},
		{"failed before", func(_ *coro.Co, f *future.Future[string]) { _ = f.Fail(errWhy) }, ", because", 0},
		{"by another task", func(co *coro.Co, f *future.Future[string]) {
			co.Scheduler().Spawn(act.Func(func(*act.Task) act.Directive { _ = f.Resolve("value"); return act.Done }))
		}, "value, <nil>", 0},
		{"by another scheduler", func(co *coro.Co, f *future.Future[string]) {
			co.Scheduler().Group().Schedulers()[1].Post(func(*act.Scheduler) { _ = f.Resolve("value") })
		}, "value, <nil>", 0},
		{"failed by another scheduler", func(co *coro.Co, f *future.Future[string]) {
			co.Scheduler().Group().Schedulers()[1].Post(func(*act.Scheduler) { _ = f.Fail(errWhy) })
		}, ", because", 0},
		{"by a goroutine", func(_ *coro.Co, f *future.Future[string]) {
			time.AfterFunc(time.Millisecond, func() { _ = f.Resolve("value") })
		}, "value, <nil>", 0},
		{"never", func(*coro.Co, *future.Future[string]) {}, ", coro: not finished within 20ms: i/o timeout", 20 * time.Millisecond},
		{"resolved, though its time is over", func(co *coro.Co, f *future.Future[string]) {
			_ = co.Sleep(25 * time.Millisecond)
			_ = f.Resolve("value")
		}, "value, <nil>", 20 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := servertest.Start(t, act.Config{Schedulers: 2}, hold)
			got := make(chan string, 1)
			r.On(0, func(s *act.Scheduler) {
				s.Spawn(coro.New(func(co *coro.Co) error {
					_ = co.Within(cmp.Or(row.within, time.Hour), func() error {
						f := future.New[string](s)
						row.resolve(co, f)
						value, err := coro.Value(co, f)
						got <- fmt.Sprintf("%v, %v", value, err)
						return nil
					})
					return nil
				}))
			})
			require.Equal(t, row.want, servertest.Receive(t, got))
		})
	}
}

func TestValueOfAFutureWhoseTaskWasDropped(t *testing.T) {
	l := bench(t)
	other := act.New(act.Config{})
	f := future.Do(other, act.Func(forever), func() int { return 1 })
	_, err := other.Step(1)
	require.NoError(t, err)
	p := play(l, func(co *coro.Co) error {
		_, err := coro.Value(co, f)
		return err
	})
	l.For(time.Millisecond)
	require.False(t, p.over)
	require.Error(t, other.Close())
	require.ErrorIs(t, p.end(), future.ErrDropped)
}

// take waits for a value of a mailbox.
func take[T any](co *coro.Co, from *monitor.Mailbox[T]) (v T, err error) {
	for {
		v, err := from.Take()
		if err == nil {
			return v, nil
		}
		if err := co.Unblock(err); err != nil {
			return v, err
		}
	}
}

func TestLettersFromOtherGoroutines(t *testing.T) {
	for name, receive := range map[string]func(co *coro.Co, from *monitor.Mailbox[int]) (int, error){
		"by Unblock": take[int],
		"by Await": func(co *coro.Co, from *monitor.Mailbox[int]) (n int, err error) {
			waiting := co.Await(func(*act.Task) bool {
				n, err = from.Take()
				if b, ok := err.(act.Blocked); ok {
					b.Arm(co.Task())
					return false
				}
				return true
			})
			if waiting != nil {
				return 0, waiting
			}
			return n, err
		},
		"by Do": func(co *coro.Co, from *monitor.Mailbox[int]) (int, error) {
			r := listener.Receive[int]{From: from}
			err := co.Do(&r)
			return r.Value, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			mailbox := monitor.NewMailbox[int](4)
			var got []int
			p := play(l, func(co *coro.Co) error {
				for {
					n, err := receive(co, mailbox)
					if err != nil {
						return err
					}
					got = append(got, n)
				}
			})
			go func() {
				for i := range 1000 {
					for mailbox.Send(i) != nil {
						runtime.Gosched()
					}
				}
				mailbox.Close()
			}()
			require.ErrorIs(t, p.end(), monitor.ErrMailboxClosed)
			require.Len(t, got, 1000)
			require.True(t, slices.IsSorted(got))
		})
	}
}

func TestUnblockReturnsWhatIsNoWait(t *testing.T) {
	l := bench(t)
	p := play(l, func(co *coro.Co) error {
		require.NoError(panicking{}, co.Unblock(nil))
		require.Equal(panicking{}, errWhy, co.Unblock(errWhy))
		return co.Unblock(io.EOF)
	})
	require.Equal(t, io.EOF, p.end())
}

func TestABodyDoesActions(t *testing.T) {
	var log trace
	step := func(name string, n int) act.Action {
		return act.Func(func(*act.Task) act.Directive {
			log.add("%s", name)
			if n--; n > 0 {
				return act.Yield
			}
			return act.Done
		})
	}
	for _, row := range []struct {
		name string
		a    func() act.Action
		want string
	}{
		{"All", func() act.Action { return act.All(step("A", 2), step("B", 3)) }, "A B A B B"},
		{"First", func() act.Action { return act.First(step("A", 2), step("B", 3)) }, "A B A"},
		{"Seq", func() act.Action { return act.Seq(step("A", 2), step("B", 2)) }, "A A B B"},
		{"coroutines", func() act.Action {
			return act.All(coro.New(func(co *coro.Co) error { log.add("A"); return co.Do(step("A", 2)) }), step("B", 2))
		}, "A A B A B"},
	} {
		t.Run(row.name, func(t *testing.T) {
			log.Reset()
			l := bench(t)
			p := play(l, func(co *coro.Co) error { return co.Do(row.a()) })
			require.NoError(t, p.end())
			require.Equal(t, row.want, log.String())
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
	for name, around := range map[string]func(act.Action) act.Action{
		"by the body": func(a act.Action) act.Action { return a },
		"by a body within": func(a act.Action) act.Action {
			return coro.New(func(co *coro.Co) error { return co.Do(a) })
		},
		"beside others": func(a act.Action) act.Action {
			return act.All(a, coro.New(func(co *coro.Co) error { return co.Sleep(time.Millisecond) }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := bench(t)
			var log trace
			p := play(l, func(co *coro.Co) error { return co.Do(around(told{&log})) })
			l.For(5 * time.Millisecond)
			require.Empty(t, log.String())
			l.S.Shutdown(servertest.Drain)
			require.NoError(t, p.end())
			require.Equal(t, "told", log.String())
		})
	}
}

func TestAnOrderIsNotPassedToAnActionThatDoHasEnded(t *testing.T) {
	l := bench(t)
	var log trace
	p := play(l, func(co *coro.Co) error {
		_ = co.Within(time.Millisecond, func() error { return co.Do(told{&log}) })
		return co.Await(func(*act.Task) bool { return co.Order() != nil }) // an order wakes everybody
	})
	l.For(3 * time.Millisecond)
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

func TestDial(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			v := serve(t, network, echo)
			l := bench(t)
			p := play(l, func(co *coro.Co) error {
				c, err := coro.Dial(co, v.address(), listener.Limits{})
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				if _, err := io.WriteString(c, "hello"); err != nil {
					return err
				}
				if err := c.CloseWrite(); err != nil {
					return err
				}
				all, err := io.ReadAll(c)
				require.Equal(panicking{}, "hello", string(all))
				return err
			})
			require.NoError(t, p.end())
			v.drain()
		})
	}
	t.Run("no server listens", func(t *testing.T) {
		for _, address := range []string{"127.0.0.1:1", "unix:/nowhere", "no address"} {
			l := bench(t)
			p := play(l, func(co *coro.Co) error {
				c, err := coro.Dial(co, address, listener.Limits{})
				require.Nil(panicking{}, c)
				return err
			})
			var refused *listener.ConnectError
			require.ErrorAs(t, p.end(), &refused)
			require.Equal(t, address, refused.Address)
		}
	})
	t.Run("the server does not answer", func(t *testing.T) {
		l := bench(t)
		p := play(l, func(co *coro.Co) error {
			return co.Within(20*time.Millisecond, func() error {
				_, err := coro.Dial(co, "192.0.2.1:9", listener.Limits{}) // RFC 5737: nobody's
				return err
			})
		})
		require.Error(t, p.end())
	})
}
