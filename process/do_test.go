package process_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// failures are the outcomes of operations, in order.
type failures struct{ all []error }

func (x *failures) as(err error) job { return func(*jobSelf) { x.all = append(x.all, err) } }

// waitingAction is an action that waits until end is called, and counts its closes.
type waitingAction struct {
	waker   act.Waker
	verdict act.Directive
	turns   int
	closed  int
}

func (c *waitingAction) Act(t *act.Task) act.Directive {
	c.turns++
	switch c.verdict {
	case 0:
		c.waker = t.Waker()
		return act.Wait
	case act.Failed:
		return t.Fail(errFailed)
	}
	return c.verdict
}

func (c *waitingAction) Close() error {
	c.closed++
	return nil
}

func (c *waitingAction) end(d act.Directive) {
	c.verdict = d
	c.waker.Wake()
}

func TestDoReportsTheOutcomeOfItsAction(t *testing.T) {
	for _, row := range []struct {
		name    string
		verdict act.Directive
		want    error
	}{
		{"done", act.Done, nil},
		{"failed", act.Failed, errFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 2)
			ref, c, got := x.spawn(process.Options{}), &waitingAction{}, &failures{}
			var e process.Operation
			x.on(0, ref, func(p *jobSelf) { e = process.Do(p, c, got.as) })
			x.on(1, ref, func(*jobSelf) {}) // the process runs on, and moves
			require.Empty(t, got.all)
			require.Zero(t, c.closed)
			c.end(row.verdict)
			x.all()
			require.Equal(t, []error{row.want}, got.all)
			require.Equal(t, 1, c.closed)
			require.False(t, e.Cancel(), "it has finished")
			require.Zero(t, x.logs.Len(), "the failure was reported, not logged")
		})
	}
}

func TestDoReportsAFailureWithoutAnError(t *testing.T) {
	x, got := newStepped(t, 1), &failures{}
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		process.Do(p, act.Func(func(*act.Task) act.Directive { return act.Failed }), got.as)
	})
	require.ErrorContains(t, onlyOne(t, got.all), "without saying why")
}

func TestDoOfAnActionThatPanics(t *testing.T) {
	x, got := newStepped(t, 1), &failures{}
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		process.Do(p, act.Func(func(*act.Task) act.Directive { panic("burst") }), got.as)
	})
	require.ErrorIs(t, onlyOne(t, got.all), process.ErrLost)
	require.Equal(t, 1, x.logs.FilterMessage("a task failed").Len(), "as for any task")
}

func TestDoOfASleep(t *testing.T) {
	x, got := newStepped(t, 2), &failures{}
	ref := x.spawn(process.Options{})
	x.on(0, ref, func(p *jobSelf) { process.Do(p, &listener.Sleep{For: time.Second}, got.as) })
	x.later(time.Second - 1)
	require.Empty(t, got.all)
	x.later(1)
	require.Equal(t, []error{nil}, got.all)
}

func TestCancelOfADo(t *testing.T) {
	for _, where := range []string{"before its first turn", "while it waits", "from a goroutine"} {
		t.Run(where, func(t *testing.T) {
			x, c, got := newStepped(t, 2), &waitingAction{}, &failures{}
			ref := x.spawn(process.Options{})
			var e process.Operation
			x.do(ref, func(p *jobSelf) {
				e = process.Do(p, c, got.as)
				if where == "before its first turn" {
					require.True(t, e.Cancel())
				}
			})
			switch where {
			case "while it waits":
				x.on(1, ref, func(*jobSelf) { require.True(t, e.Cancel()) })
			case "from a goroutine":
				done := make(chan bool)
				go func() { done <- e.Cancel() }()
				require.True(t, servertest.Receive(t, done))
			}
			x.all()
			require.Equal(t, 1, c.closed)
			require.Equal(t, where == "before its first turn", c.turns == 0)
			require.False(t, e.Cancel())
			require.Empty(t, got.all)
			quiescent := x.sys.Quiescent()
			x.all()
			require.True(t, quiescent.Resolved())
		})
	}
}

func TestTheEndOfAProcessCancelsItsOperations(t *testing.T) {
	for _, there := range []int{0, 1} {
		x, got := newStepped(t, 2), &failures{}
		ref, actions := x.spawn(process.Options{}), [3]waitingAction{}
		pending := future.New[int](x.g.Schedulers()[0])
		x.on(0, ref, func(p *jobSelf) {
			for i := range actions {
				process.Do(p, &actions[i], got.as)
			}
			process.Await(p, pending, func(int, error) job { t.Error("the operation was cancelled"); return exits })
		})
		x.all()
		x.on(there, ref, panics)
		x.all()
		for i := range actions {
			require.Equal(t, 1, actions[i].closed)
		}
		require.Empty(t, got.all)
		for _, s := range x.g.Schedulers() {
			require.True(t, s.Finished(), "no operation is left")
		}
		require.NoError(t, pending.Resolve(1))
		x.all()
	}
}

func TestAPanicInAsOfDoAffectsNoOtherProcess(t *testing.T) {
	x, c := newStepped(t, 1), &waitingAction{}
	ref := x.spawn(process.Options{})
	x.do(ref, func(p *jobSelf) { process.Do(p, c, func(error) job { panic("burst") }) })
	c.end(act.Done)
	x.all()
	require.Equal(t, 1, c.closed)
	require.Equal(t, 1, x.logs.Len())
	alive := false
	x.do(ref, func(*jobSelf) { alive = true })
	require.True(t, alive)
	quiescent := x.sys.Quiescent()
	x.all()
	require.True(t, quiescent.Resolved())
}

func TestAwait(t *testing.T) {
	for _, row := range []struct {
		name    string
		resolve func(f *future.Future[int]) error
		value   int
		err     error
	}{
		{"a value", func(f *future.Future[int]) error { return f.Resolve(7) }, 7, nil},
		{"a failure", func(f *future.Future[int]) error { return f.Fail(errFailed) }, 0, errFailed},
	} {
		for _, before := range []bool{false, true} {
			for _, home := range []int{0, 1} {
				x := newStepped(t, 2)
				f := future.New[int](x.g.Schedulers()[home])
				if before {
					require.NoError(t, row.resolve(f))
				}
				heard := 0
				ref := x.spawn(process.Options{})
				x.on(0, ref, func(p *jobSelf) {
					process.Await(p, f, func(v int, err error) job {
						return func(*jobSelf) {
							heard++
							require.Equal(t, row.value, v)
							require.Equal(t, row.err, err)
						}
					})
				})
				x.all()
				if !before {
					require.Zero(t, heard)
					require.NoError(t, row.resolve(f))
					x.all()
				}
				require.Equal(t, 1, heard, row.name)
				require.Zero(t, x.logs.Len())
			}
		}
	}
}

// stoppingAction is a waitingAction that is Done after an order.
type stoppingAction struct{ waitingAction }

func (c *stoppingAction) Stop(*act.Task, shutdown.Order) { c.verdict = act.Done }

func TestDoForwardsOrdersToItsAction(t *testing.T) {
	x, c, got := newStepped(t, 2), &stoppingAction{}, &failures{}
	x.do(x.spawn(process.Options{}), func(p *jobSelf) { process.Do(p, c, got.as) })
	x.g.Shutdown(drain)
	x.all()
	require.Equal(t, []error{nil}, got.all)
	require.Equal(t, 1, c.closed)
	require.False(t, x.underOrder(), "nothing else delays the end")
}

// An order drops the operation, and the process stays alive.
func TestAwaitReportsErrLostWhenItIsDropped(t *testing.T) {
	x := newStepped(t, 2)
	f := future.New[int](x.g.Schedulers()[0])
	var got []error
	ref := x.spawn(process.Options{})
	x.on(0, ref, func(p *jobSelf) {
		process.Await(p, f, func(_ int, err error) job { return func(*jobSelf) { got = append(got, err) } })
	})
	x.g.Schedulers()[0].Shutdown(servertest.Cut) // the other scheduler runs on
	_, err := x.g.Schedulers()[0].Step(1)
	require.ErrorContains(t, err, "process: ") // of the operation
	x.all()
	require.ErrorIs(t, onlyOne(t, got), process.ErrLost)
}

func TestOffload(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	ref := x.spawn(process.Options{})
	type outcome struct {
		value int
		err   error
	}
	outcomes := make(chan outcome, 1)
	as := func(v int, err error) job { return func(*jobSelf) { outcomes <- outcome{v, err} } }
	off := func(f func() (int, error)) outcome {
		x.do(ref, func(p *jobSelf) { process.Offload(p, f, as) })
		return servertest.Receive(t, outcomes)
	}
	require.Equal(t, outcome{7, nil}, off(func() (int, error) { time.Sleep(time.Millisecond); return 7, nil }))
	require.Equal(t, outcome{7, errFailed}, off(func() (int, error) { return 7, errFailed }))
	var p *act.Panic
	require.ErrorAs(t, off(func() (int, error) { panic("burst") }).err, &p)
	require.Equal(t, "burst", p.Value)
	require.Zero(t, x.Logs.Len())
	require.NoError(t, ref.Send(x.sys, exits))
	x.close()
}

func TestAnOffloadEndsWithItsProcess(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	ref, begun, release, over := x.spawn(process.Options{}), make(chan bool), make(chan bool), make(chan bool)
	x.do(ref, func(p *jobSelf) {
		process.Offload(p, func() (int, error) { defer close(over); close(begun); <-release; return 7, nil },
			func(int, error) job { t.Error("the process has ended"); return exits })
	})
	servertest.Receive(t, begun)
	x.do(ref, exits)
	x.close() // the function does not keep Run from returning
	close(release)
	servertest.Receive(t, over)
}

func TestDoOfACall(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	got := make(chan error, 1)
	ref := x.spawn(process.Options{})
	call := &act.Call[string]{F: func() (string, error) { return "seven", nil }}
	x.do(ref, func(p *jobSelf) {
		process.Do(p, act.Seq(&listener.Sleep{For: time.Millisecond}, call), func(err error) job {
			return func(*jobSelf) { got <- err }
		})
	})
	require.NoError(t, servertest.Receive(t, got))
	require.Equal(t, "seven", call.Value)
	x.do(ref, func(p *jobSelf) {
		process.Do(p, listener.Within(time.Millisecond, &listener.Sleep{For: time.Hour}), func(err error) job {
			return func(*jobSelf) { got <- err }
		})
	})
	require.ErrorContains(t, servertest.Receive(t, got), "not finished within 1ms")
	require.NoError(t, ref.Send(x.sys, exits))
	x.close()
}

// An action belongs to its offloaded function until that returns.
func TestAnActionIsClosedAfterItsOffloadedFunctionReturns(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	ref, release := x.spawn(process.Options{}), make(chan bool)
	var under, closed atomic.Int32
	begun := make(chan bool)
	a := &closingAction{act.Func(func(t *act.Task) act.Directive {
		return t.Offload(func() {
			under.Store(1)
			close(begun)
			<-release
			under.Store(0)
		})
	}), func() error {
		if under.Load() != 0 {
			t.Error("closed while its function runs")
		}
		closed.Add(1)
		return errors.New("for the log")
	}}
	x.do(ref, func(p *jobSelf) { process.Do(p, a, func(error) job { t.Error("the process has ended"); return exits }) })
	servertest.Receive(t, begun)
	ref.Kill()
	require.Equal(t, process.Killed, x.ended(ref).Reason)
	close(release)
	x.close()
	require.EqualValues(t, 1, closed.Load())
}

// closingAction is an act.Action that has to be closed.
type closingAction struct {
	act.Action
	close func() error
}

func (c *closingAction) Close() error { return c.close() }

func TestCancelRacesWithTheEndOfTheOperation(t *testing.T) {
	x := startLive(t, act.Config{Schedulers: 2})
	const batch = 100
	cancelled, arrived := 0, 0
	ref := process.Spawn(x.sys, runJobs, process.Options{Limit: process.Unbounded})
	for range scaled(20_000) / batch {
		all := [batch]process.Operation{}
		came := [batch]bool{}
		x.do(ref, func(p *jobSelf) {
			for i := range all {
				turns := 3
				all[i] = process.Do(p, act.Func(func(*act.Task) act.Directive {
					if turns--; turns > 0 {
						return act.Yield
					}
					return act.Done
				}), func(error) job { return func(*jobSelf) { came[i] = true } })
			}
		})
		stopped := [batch]bool{}
		for i, e := range all {
			stopped[i] = e.Cancel()
		}
		x.quiesce()
		x.do(ref, func(*jobSelf) {
			for i := range all {
				if came[i] == stopped[i] {
					t.Error("cancelled and arrived, or not cancelled and lost")
				}
				if came[i] {
					arrived++
				} else {
					cancelled++
				}
			}
		})
	}
	t.Logf("%d cancelled, %d arrived", cancelled, arrived)
	require.NoError(t, ref.Send(x.sys, exits))
	x.close()
}

func TestOperationsOfEndedProcessesAreForgotten(t *testing.T) {
	x := newStepped(t, 2)
	never := future.New[int](x.g.Schedulers()[0])
	lives := func(n int) {
		for i := range n {
			ref := x.spawn(process.Options{})
			x.on(0, ref, func(p *jobSelf) {
				process.Await(p, never, func(int, error) job { return exits })
				process.Do(p, &listener.Sleep{For: 1000 * time.Hour}, func(error) job { return exits })
			})
			x.on(i%2, ref, exits)
		}
		x.all()
	}
	lives(500)
	before := heapInUse()
	lives(2000)
	require.Less(t, heapInUse()-before, int64(1<<17))
}

// A future of Quiescent is resolved as well if the last operation is cancelled, or its message panics.
func TestAnOperationWithoutAMessageIsNoLongerPending(t *testing.T) {
	for name, end := range map[string]func(c *waitingAction, e process.Operation){
		"cancelled on a goroutine": func(_ *waitingAction, e process.Operation) {
			done := make(chan bool)
			go func() { done <- e.Cancel() }()
			<-done
		},
		"a panic instead of a message": func(c *waitingAction, _ process.Operation) { c.end(act.Done) },
	} {
		t.Run(name, func(t *testing.T) {
			x, c := newStepped(t, 2), &waitingAction{}
			var e process.Operation
			x.do(x.spawn(process.Options{}), func(p *jobSelf) { e = process.Do(p, c, func(error) job { panic("burst") }) })
			quiescent := x.sys.Quiescent()
			x.all()
			require.False(t, quiescent.Resolved())
			end(c, e)
			x.all()
			require.True(t, quiescent.Resolved())
		})
	}
}
