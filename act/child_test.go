package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// around is what embedding a Child looks like: it notes its turns, orders and end before it forwards them.
type around struct {
	act.Child
	h    *history
	make func() act.Action // in the first turn; nil: the Child is there
	then act.Action        // goes on with that one when the first is Done
}

func (a *around) Act(t *act.Task) act.Directive {
	a.h.WriteString("(")
	if a.make != nil && a.Action == nil {
		a.Action = a.make()
	}
	d := a.Child.Act(t)
	if d == act.Done && a.then != nil {
		a.Child, a.then = act.Child{Action: a.then}, nil
		return a.Child.Act(t)
	}
	return d
}

func (a *around) Stop(t *act.Task, o shutdown.Order) {
	a.h.WriteString("!")
	a.Child.Stop(t, o)
}

func (a *around) Close() error {
	a.h.WriteString("-")
	return a.Child.Close()
}

func TestAChildForwardsEverything(t *testing.T) {
	var h history
	a := &child{name: "A", answers: []act.Directive{act.Yield, act.Wait, act.Done}, h: &h}
	s, _ := newScheduler(t, act.Config{})
	x := &around{Child: act.Child{Action: a}, h: &h}
	s.Spawn(x)
	_, err := s.Step(2)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	require.NoError(t, s.Run())
	require.Equal(t, "(A(A!!A(A--A", h.String())
	require.Equal(t, "*act_test.child", act.Name(&act.Child{Action: a}))
	require.Equal(t, "nothing", act.Name(&act.Child{}))
}

func TestAChildThatWasClosedFailsAndOneThatIsNoneIsDone(t *testing.T) {
	var h history
	x := &act.Child{Action: &child{name: "A", answers: []act.Directive{act.Wait}, h: &h}}
	require.NoError(t, x.Close())
	d, err := turn(t, x)
	require.Equal(t, act.Failed, d)
	require.ErrorIs(t, err, act.ErrDropped)
	x.Stop(nil, shutdown.Policy{Kind: shutdown.Unbounded})
	require.Nil(t, x.Abandon())
	require.Equal(t, "-A", h.String())

	none := &act.Child{}
	d, _ = turn(t, none)
	require.Equal(t, act.Done, d)
	require.Nil(t, none.Abandon())
	require.NoError(t, none.Close())
}

func TestAChildThatIsSetInATurnHearsOfAnOrderThatCameBefore(t *testing.T) {
	for name, c := range map[string]struct {
		orders int
		want   string
	}{"no order": {0, "(A(AB--B"}, "one order": {1, "!(!AA(A!BB--B"}} {
		t.Run(name, func(t *testing.T) {
			var h history
			s, _ := newScheduler(t, act.Config{})
			s.Spawn(&around{h: &h, make: func() act.Action {
				return &child{name: "A", answers: []act.Directive{act.Yield, act.Done}, h: &h}
			}, then: &child{name: "B", answers: []act.Directive{act.Done}, h: &h}})
			for range c.orders {
				s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
			}
			require.NoError(t, s.Run())
			require.Equal(t, c.want, h.String())
		})
	}
}
