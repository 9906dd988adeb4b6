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

// brought is what operations have brought.
type brought struct{ all []error }

func (x *brought) as(err error) deed { return func(*doer) { x.all = append(x.all, err) } }

// chore is an action that waits until it is told how to end, and knows when it is closed.
type chore struct {
	waker   act.Waker
	verdict act.Directive
	turns   int
	closed  int
}

func (c *chore) Act(t *act.Task) act.Directive {
	c.turns++
	switch c.verdict {
	case 0:
		c.waker = t.Waker()
		return act.Wait
	case act.Failed:
		return t.Fail(errFaltered)
	}
	return c.verdict
}

func (c *chore) Close() error {
	c.closed++
	return nil
}

func (c *chore) end(d act.Directive) {
	c.verdict = d
	c.waker.Wake()
}

func TestAnOperationBringsWhatItsActionHasComeTo(t *testing.T) {
	for _, row := range []struct {
		name    string
		verdict act.Directive
		want    error
	}{
		{"done", act.Done, nil},
		{"failed", act.Failed, errFaltered},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := takeInHand(t, 2)
			ref, c, got := x.doer(process.Options{}), &chore{}, &brought{}
			var e process.Operation
			x.on(0, ref, func(p *doer) { e = process.Do(p, c, got.as) })
			x.on(1, ref, func(*doer) {}) // it goes on, and moves
			require.Empty(t, got.all)
			require.Zero(t, c.closed)
			c.end(row.verdict)
			x.all()
			require.Equal(t, []error{row.want}, got.all)
			require.Equal(t, 1, c.closed)
			require.False(t, e.Cancel(), "it is done")
			require.Zero(t, x.logs.Len(), "its failure has been told to somebody")
		})
	}
}

func TestAFailureWithoutAReasonIsOneNoneTheLess(t *testing.T) {
	x, got := takeInHand(t, 1), &brought{}
	x.do(x.doer(process.Options{}), func(p *doer) {
		process.Do(p, act.Func(func(*act.Task) act.Directive { return act.Failed }), got.as)
	})
	require.ErrorContains(t, onlyOne(t, got.all), "without saying why")
}

func TestAnOperationWhoseActionPanics(t *testing.T) {
	x, got := takeInHand(t, 1), &brought{}
	x.do(x.doer(process.Options{}), func(p *doer) {
		process.Do(p, act.Func(func(*act.Task) act.Directive { panic("burst") }), got.as)
	})
	require.ErrorIs(t, onlyOne(t, got.all), process.ErrLost)
	require.Equal(t, 1, x.logs.FilterMessage("a task failed").Len(), "as that of any task")
}

func TestAnOperationThatSleeps(t *testing.T) {
	x, got := takeInHand(t, 2), &brought{}
	ref := x.doer(process.Options{})
	x.on(0, ref, func(p *doer) { process.Do(p, &listener.Sleep{For: time.Second}, got.as) })
	x.later(time.Second - 1)
	require.Empty(t, got.all)
	x.later(1)
	require.Equal(t, []error{nil}, got.all)
}

func TestAnOperationThatIsCancelled(t *testing.T) {
	for _, where := range []string{"before its first turn", "while it waits", "from a goroutine"} {
		t.Run(where, func(t *testing.T) {
			x, c, got := takeInHand(t, 2), &chore{}, &brought{}
			ref := x.doer(process.Options{})
			var e process.Operation
			x.do(ref, func(p *doer) {
				e = process.Do(p, c, got.as)
				if where == "before its first turn" {
					require.True(t, e.Cancel())
				}
			})
			switch where {
			case "while it waits":
				x.on(1, ref, func(*doer) { require.True(t, e.Cancel()) })
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
			quiet := x.sys.Quiescent()
			x.all()
			require.True(t, quiet.Resolved())
		})
	}
}

func TestTheEndIsThatOfOperations(t *testing.T) {
	for _, there := range []int{0, 1} {
		x, got := takeInHand(t, 2), &brought{}
		ref, chores := x.doer(process.Options{}), [3]chore{}
		pending := future.New[int](x.g.Schedulers()[0])
		x.on(0, ref, func(p *doer) {
			for i := range chores {
				process.Do(p, &chores[i], got.as)
			}
			process.Await(p, pending, func(int, error) deed { t.Error("it was cancelled"); return leaves })
		})
		x.all()
		x.on(there, ref, bursts)
		x.all()
		for i := range chores {
			require.Equal(t, 1, chores[i].closed)
		}
		require.Empty(t, got.all)
		for _, s := range x.g.Schedulers() {
			require.True(t, s.Finished(), "nothing is left of them")
		}
		require.NoError(t, pending.Resolve(1))
		x.all()
	}
}

func TestAnAsThatPanicsInAnOperationHarmsNobody(t *testing.T) {
	x, c := takeInHand(t, 1), &chore{}
	ref := x.doer(process.Options{})
	x.do(ref, func(p *doer) { process.Do(p, c, func(error) deed { panic("burst") }) })
	c.end(act.Done)
	x.all()
	require.Equal(t, 1, c.closed)
	require.Equal(t, 1, x.logs.Len())
	alive := false
	x.do(ref, func(*doer) { alive = true })
	require.True(t, alive)
	quiet := x.sys.Quiescent()
	x.all()
	require.True(t, quiet.Resolved())
}

func TestAwait(t *testing.T) {
	for _, row := range []struct {
		name    string
		resolve func(f *future.Future[int]) error
		value   int
		err     error
	}{
		{"a value", func(f *future.Future[int]) error { return f.Resolve(7) }, 7, nil},
		{"a failure", func(f *future.Future[int]) error { return f.Fail(errFaltered) }, 0, errFaltered},
	} {
		for _, before := range []bool{false, true} {
			for _, home := range []int{0, 1} {
				x := takeInHand(t, 2)
				f := future.New[int](x.g.Schedulers()[home])
				if before {
					require.NoError(t, row.resolve(f))
				}
				heard := 0
				ref := x.doer(process.Options{})
				x.on(0, ref, func(p *doer) {
					process.Await(p, f, func(v int, err error) deed {
						return func(*doer) {
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

// stoppingChore ends when it is told of an order.
type stoppingChore struct{ chore }

func (c *stoppingChore) Stop(*act.Task, shutdown.Order) { c.verdict = act.Done }

func TestAnOrderIsPassedOnToTheActionOfAnOperation(t *testing.T) {
	x, c, got := takeInHand(t, 2), &stoppingChore{}, &brought{}
	x.do(x.doer(process.Options{}), func(p *doer) { process.Do(p, c, got.as) })
	x.g.Shutdown(drains)
	x.all()
	require.Equal(t, []error{nil}, got.all)
	require.Equal(t, 1, c.closed)
	require.False(t, x.underOrder(), "nothing else holds it")
}

// What was awaited is told to be lost, not to be pending, when an order drops the operation and the process is left.
func TestAnAwaitThatIsDroppedIsLost(t *testing.T) {
	x := takeInHand(t, 2)
	f := future.New[int](x.g.Schedulers()[0])
	var got []error
	ref := x.doer(process.Options{})
	x.on(0, ref, func(p *doer) {
		process.Await(p, f, func(_ int, err error) deed { return func(*doer) { got = append(got, err) } })
	})
	x.g.Schedulers()[0].Shutdown(servertest.Cut) // the other goes on
	_, err := x.g.Schedulers()[0].Step(1)
	require.ErrorContains(t, err, "process: ") // its name
	x.all()
	require.ErrorIs(t, onlyOne(t, got), process.ErrLost)
}

func TestOffload(t *testing.T) {
	x := settleIn(t, act.Config{Schedulers: 2})
	ref := x.doer(process.Options{})
	type outcome struct {
		value int
		err   error
	}
	outcomes := make(chan outcome, 1)
	as := func(v int, err error) deed { return func(*doer) { outcomes <- outcome{v, err} } }
	off := func(f func() (int, error)) outcome {
		x.do(ref, func(p *doer) { process.Offload(p, f, as) })
		return servertest.Receive(t, outcomes)
	}
	require.Equal(t, outcome{7, nil}, off(func() (int, error) { time.Sleep(time.Millisecond); return 7, nil }))
	require.Equal(t, outcome{7, errFaltered}, off(func() (int, error) { return 7, errFaltered }))
	var p *act.Panic
	require.ErrorAs(t, off(func() (int, error) { panic("burst") }).err, &p)
	require.Equal(t, "burst", p.Value)
	require.Zero(t, x.Logs.Len())
	require.NoError(t, ref.Send(x.sys, leaves))
	x.close()
}

func TestAnOffloadOfOneWhoEndsIsForgotten(t *testing.T) {
	x := settleIn(t, act.Config{Schedulers: 2})
	ref, begun, goOn, over := x.doer(process.Options{}), make(chan bool), make(chan bool), make(chan bool)
	x.do(ref, func(p *doer) {
		process.Offload(p, func() (int, error) { defer close(over); close(begun); <-goOn; return 7, nil },
			func(int, error) deed { t.Error("nobody is there"); return leaves })
	})
	servertest.Receive(t, begun)
	x.do(ref, leaves)
	x.close() // the function does not hold Run
	close(goOn)
	servertest.Receive(t, over)
}

func TestDoOfACall(t *testing.T) {
	x := settleIn(t, act.Config{Schedulers: 2})
	got := make(chan error, 1)
	ref := x.doer(process.Options{})
	call := &act.Call[string]{F: func() (string, error) { return "seven", nil }}
	x.do(ref, func(p *doer) {
		process.Do(p, act.Seq(&listener.Sleep{For: time.Millisecond}, call), func(err error) deed {
			return func(*doer) { got <- err }
		})
	})
	require.NoError(t, servertest.Receive(t, got))
	require.Equal(t, "seven", call.Value)
	x.do(ref, func(p *doer) {
		process.Do(p, listener.Within(time.Millisecond, &listener.Sleep{For: time.Hour}), func(err error) deed {
			return func(*doer) { got <- err }
		})
	})
	require.ErrorContains(t, servertest.Receive(t, got), "not finished within 1ms")
	require.NoError(t, ref.Send(x.sys, leaves))
	x.close()
}

// An action that has its own work offloaded belongs to the function until that returns.
func TestAnOperationThatOffloadsIsClosedAfterwards(t *testing.T) {
	x := settleIn(t, act.Config{Schedulers: 2})
	ref, goOn := x.doer(process.Options{}), make(chan bool)
	var under, closed atomic.Int32
	begun := make(chan bool)
	a := &closingAction{act.Func(func(t *act.Task) act.Directive {
		return t.Offload(func() {
			under.Store(1)
			close(begun)
			<-goOn
			under.Store(0)
		})
	}), func() error {
		if under.Load() != 0 {
			t.Error("closed while its function runs")
		}
		closed.Add(1)
		return errors.New("heard of by the log")
	}}
	x.do(ref, func(p *doer) { process.Do(p, a, func(error) deed { t.Error("nobody is there"); return leaves }) })
	servertest.Receive(t, begun)
	ref.Kill()
	require.Equal(t, process.Killed, x.ended(ref).Reason)
	close(goOn)
	x.close()
	require.EqualValues(t, 1, closed.Load())
}

// closingAction is an act.Action that has to be closed.
type closingAction struct {
	act.Action
	close func() error
}

func (c *closingAction) Close() error { return c.close() }

func TestCancelAgainstTheEndOfTheOperation(t *testing.T) {
	x := settleIn(t, act.Config{Schedulers: 2})
	const batch = 100
	cancelled, brought := 0, 0
	ref := process.Spawn(x.sys, doesDeeds, process.Options{Limit: process.Unbounded})
	for range often(20_000) / batch {
		all := [batch]process.Operation{}
		came := [batch]bool{}
		x.do(ref, func(p *doer) {
			for i := range all {
				turns := 3
				all[i] = process.Do(p, act.Func(func(*act.Task) act.Directive {
					if turns--; turns > 0 {
						return act.Yield
					}
					return act.Done
				}), func(error) deed { return func(*doer) { came[i] = true } })
			}
		})
		stopped := [batch]bool{}
		for i, e := range all {
			stopped[i] = e.Cancel()
		}
		x.quiesce()
		x.do(ref, func(*doer) {
			for i := range all {
				if came[i] == stopped[i] {
					t.Error("cancelled and brought, or neither")
				}
				if came[i] {
					brought++
				} else {
					cancelled++
				}
			}
		})
	}
	t.Logf("%d cancelled, %d brought", cancelled, brought)
	require.NoError(t, ref.Send(x.sys, leaves))
	x.close()
}

func TestOperationsOfTheDeadAreForgotten(t *testing.T) {
	x := takeInHand(t, 2)
	never := future.New[int](x.g.Schedulers()[0])
	lives := func(n int) {
		for i := range n {
			ref := x.doer(process.Options{})
			x.on(0, ref, func(p *doer) {
				process.Await(p, never, func(int, error) deed { return leaves })
				process.Do(p, &listener.Sleep{For: 1000 * time.Hour}, func(error) deed { return leaves })
			})
			x.on(i%2, ref, leaves)
		}
		x.all()
	}
	lives(500)
	before := inUse()
	lives(2000)
	require.Less(t, inUse()-before, int64(1<<17))
}

// Who waits for quiescence hears of it also when what was under way is given up, or comes to nothing, elsewhere.
func TestNothingIsUnderWayAfterAnOperationThatBringsNothing(t *testing.T) {
	for name, end := range map[string]func(c *chore, e process.Operation){
		"cancelled on a goroutine": func(_ *chore, e process.Operation) {
			done := make(chan bool)
			go func() { done <- e.Cancel() }()
			<-done
		},
		"a panic instead of a message": func(c *chore, _ process.Operation) { c.end(act.Done) },
	} {
		t.Run(name, func(t *testing.T) {
			x, c := takeInHand(t, 2), &chore{}
			var e process.Operation
			x.do(x.doer(process.Options{}), func(p *doer) { e = process.Do(p, c, func(error) deed { panic("burst") }) })
			quiet := x.sys.Quiescent()
			x.all()
			require.False(t, quiet.Resolved())
			end(c, e)
			x.all()
			require.True(t, quiet.Resolved())
		})
	}
}
