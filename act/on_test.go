package act_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

// calling is the only task of s: a, and what came of it.
func calling(t *testing.T, s *act.Scheduler, a act.Action) *error {
	t.Helper()
	err := new(error)
	child := act.Child{Action: a}
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		d := child.Act(t)
		if d == act.Failed {
			*err = t.Err()
		}
		return d
	}))
	return err
}

func TestTheEndOfOn(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		do     func(t *act.Task) act.Directive
		before func(there *act.Scheduler)
		closed bool // with the call in its inbox
		err    string
	}{
		"done":          {do: func(*act.Task) act.Directive { return act.Done }},
		"fails":         {do: func(t *act.Task) act.Directive { return t.Fail(why) }, err: "why"},
		"panics":        {do: func(*act.Task) act.Directive { panic("oh") }, err: "panic: oh"},
		"dropped":       {do: func(*act.Task) act.Directive { return act.Wait }, err: act.ErrDropped.Error()},
		"abandoned":     {do: func(t *act.Task) act.Directive { return t.Offload(func() {}) }, err: act.ErrDropped.Error()},
		"closed then":   {do: func(*act.Task) act.Directive { panic("begun") }, closed: true, err: act.ErrClosed.Error()},
		"closed before": {before: func(s *act.Scheduler) { _ = s.Close() }, err: act.ErrClosed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			here, _ := newScheduler(t, act.Config{})
			there, logs := newScheduler(t, act.Config{Executor: never{}})
			if c.before != nil {
				c.before(there)
			}
			err := calling(t, here, act.On(there, act.Func(c.do)))
			_, stepped := here.Step(1)
			require.NoError(t, stepped)
			if c.before == nil && !c.closed {
				_, _ = there.Step(100)
			}
			_ = there.Close()
			require.NoError(t, here.Run())
			if c.err == "" {
				require.NoError(t, *err)
			} else {
				require.EqualError(t, *err, c.err)
			}
			require.Zero(t, logs.FilterMessage("a task failed").Len(), "only the caller is told")
		})
	}
}

func TestOnThatWasClosedIsNotBegun(t *testing.T) {
	here, _ := newScheduler(t, act.Config{})
	there, _ := newScheduler(t, act.Config{})
	begun := false
	here.Spawn(act.First(
		act.On(there, act.Func(func(*act.Task) act.Directive { begun = true; return act.Done })),
		act.Func(func(*act.Task) act.Directive { return act.Done })))
	require.NoError(t, here.Run())
	require.NoError(t, there.Run())
	require.False(t, begun)
}
