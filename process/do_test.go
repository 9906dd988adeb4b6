package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
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
	for verdict, want := range map[act.Directive]error{
		act.Done: nil, act.Failed: errFailed, act.Directive(77): act.ErrDropped, // which panics
	} {
		x := newStepped(t, 2)
		ref, c, got := x.spawn(process.Options{}), &waitingAction{}, &failures{}
		var e process.Operation
		x.on(0, ref, func(p *jobSelf) { e = process.Do(p, c, got.as) })
		x.on(1, ref, func(*jobSelf) {}) // the process runs on, and moves
		require.Empty(t, got.all)
		require.Zero(t, c.closed)
		c.end(verdict)
		x.all()
		require.ErrorIs(t, onlyOne(t, got.all), want)
		require.Equal(t, 1, c.closed)
		require.False(t, e.Cancel(), "it has finished")
	}
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

// Wherever it ends.
func TestTheEndOfAProcessEndsWhatItHasBegun(t *testing.T) {
	for _, there := range []int{0, 1} {
		x, actions := newStepped(t, 2), [3]waitingAction{}
		ref, asked := x.spawn(process.Options{}), x.spawn(process.Options{})
		pending := future.New[int](x.g.Schedulers()[0])
		var kept textReply
		late := func() job { t.Error("the process has ended"); return exits }
		x.on(0, ref, func(p *jobSelf) {
			p.After(time.Second, func(*jobSelf) { late() })
			for i := range actions {
				process.Do(p, &actions[i], func(error) job { return late() })
			}
			process.Do(p, pending.Await(), func(error) job { return late() })
			keep := questionFor(func(_ *jobSelf, r textReply) { kept = r })
			process.Do(p, &process.Ask[job, string]{To: asked, Within: time.Second, Message: keep}, func(error) job { return late() })
		})
		x.all()
		require.True(t, kept.Open())
		x.on(there, ref, panics)
		x.all()
		for i := range actions {
			require.Equal(t, 1, actions[i].closed)
		}
		require.False(t, kept.Open())
		require.False(t, kept.Send("late"))
		_, set := x.g.Schedulers()[0].NextDeadline()
		require.False(t, set, "no timer is kept until it is due")
		x.do(asked, exits)
		for _, s := range x.g.Schedulers() {
			require.True(t, s.Finished(), "no operation is left")
		}
		require.NoError(t, pending.Resolve(1))
		x.later(time.Hour)
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
func TestDoReportsThatItWasDropped(t *testing.T) {
	x := newStepped(t, 2)
	f := future.New[int](x.g.Schedulers()[0])
	var got []error
	ref := x.spawn(process.Options{})
	x.on(0, ref, func(p *jobSelf) {
		process.Do(p, f.Await(), func(err error) job { return func(*jobSelf) { got = append(got, err) } })
	})
	x.g.Schedulers()[0].Shutdown(servertest.Cut) // the other scheduler runs on
	_, err := x.g.Schedulers()[0].Step(1)
	require.ErrorContains(t, err, "process: ") // of the operation
	x.all()
	require.ErrorIs(t, onlyOne(t, got), act.ErrDropped)
}
