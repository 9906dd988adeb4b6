package listener_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

func TestSleepIsNeverShort(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, 0, 1, time.Microsecond, time.Second, time.Hour} {
		l, clock := virtual(t)
		s := &listener.Sleep{For: d}
		o := spawn(l.S, s).begun(l)
		if d > 0 {
			pass(l, clock, d-1)
			require.Equal(t, act.Wait, o.directive, "%v", d)
			pass(l, clock, 1)
		}
		require.Equal(t, act.Done, o.over(l))
		require.LessOrEqual(t, o.turns, 2)
		l.Turn(func(task *act.Task) { require.Equal(t, act.Done, s.Act(task), "it says so again") })
	}
}

// script is an action that returns what it is made with, and notes the calls.
type script struct {
	says   []act.Directive
	err    error
	f      func() // offloaded, for Async
	closed int
	told   []shutdown.Order
}

func (s *script) Act(t *act.Task) act.Directive {
	d := s.says[0]
	if len(s.says) > 1 {
		s.says = s.says[1:]
	}
	switch d {
	case act.Failed:
		if s.err != nil {
			return t.Fail(s.err)
		}
	case act.Async:
		return t.Offload(s.f)
	}
	return d
}

func (s *script) Stop(_ *act.Task, o shutdown.Order) { s.told = append(s.told, o) }

func (s *script) Close() error { s.closed++; return nil }

func (s *script) Describe(d *act.Description) { d.WaitsFor("the peer") }

func TestWithinBoundsAnAction(t *testing.T) {
	bad := errors.New("bad")
	for name, row := range map[string]struct {
		says    []act.Directive
		err     error
		want    act.Directive
		wantErr error
	}{
		"done":              {says: []act.Directive{act.Done}, want: act.Done},
		"done later":        {says: []act.Directive{act.Yield, act.Wait, act.Done}, want: act.Done},
		"failed":            {says: []act.Directive{act.Yield, act.Failed}, err: bad, want: act.Failed, wantErr: bad},
		"waiting too long":  {says: []act.Directive{act.Yield, act.Wait}, want: act.Failed, wantErr: os.ErrDeadlineExceeded},
		"never waiting":     {says: []act.Directive{act.Yield}, want: act.Failed, wantErr: os.ErrDeadlineExceeded},
		"late but finished": {says: []act.Directive{act.Wait, act.Done}, want: act.Done},
	} {
		t.Run(name, func(t *testing.T) {
			l, clock := virtual(t)
			child := &script{says: row.says, err: row.err}
			w := listener.Within(time.Second, child)
			o := spawn(l.S, w).begun(l)
			pass(l, clock, time.Second)
			require.Equal(t, row.want, o.over(l))
			require.ErrorIs(t, o.err, row.wantErr)
			late := row.wantErr == os.ErrDeadlineExceeded
			if late {
				require.Equal(t, 1, child.closed, "the loser")
				require.ErrorContains(t, o.err, "within 1s, waiting for the peer: ")
			} else {
				require.Zero(t, child.closed, "it has finished")
			}
			l.Turn(func(task *act.Task) {
				require.Equal(t, row.want, w.Act(task), "it says so again")
				require.ErrorIs(t, task.Err(), row.wantErr)
			})
			require.NoError(t, w.(io.Closer).Close())
			require.NoError(t, w.(io.Closer).Close())
			require.Equal(t, 1, child.closed, "once")
		})
	}
}

// What was broken: the time began when the function had returned.
func TestWithinCountsTheTimeOfAnOffloadedFunction(t *testing.T) {
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		t.Run(name, func(t *testing.T) {
			l, clock := virtual(t)
			begun, release := make(chan struct{}), make(chan struct{})
			child := &script{says: []act.Directive{act.Async, act.Wait}, f: func() { close(begun); <-release }}
			o := spawn(l.S, listener.Within(time.Second, child))
			_, err := l.S.Step(1)
			require.NoError(t, err)
			<-begun
			if late {
				pass(l, clock, time.Second)
			}
			require.Zero(t, child.closed, "it belongs to its function")
			close(release)
			l.Until("its second turn", func() bool { return o.turns >= 2 })
			require.Equal(t, late, o.directive == act.Failed)
			if !late {
				pass(l, clock, time.Second)
				require.Equal(t, act.Failed, o.over(l))
			}
			require.Equal(t, 1, child.closed)
		})
	}
}

func TestWithinPassesOrdersOn(t *testing.T) {
	l, _ := virtual(t)
	child := &script{says: []act.Directive{act.Yield, act.Yield, act.Done}}
	w := listener.Within(time.Hour, child).(interface {
		act.Action
		act.Stopper
	})
	l.Turn(func(task *act.Task) {
		require.Equal(t, act.Yield, w.Act(task))
		w.Stop(task, servertest.Drain)
		require.Equal(t, []shutdown.Order{servertest.Drain}, child.told)
		require.Equal(t, act.Yield, w.Act(task))
		require.Equal(t, act.Done, w.Act(task))
		w.Stop(task, servertest.Drain)
		require.Len(t, child.told, 1, "an action that has finished gets no order")
		listener.Within(time.Hour, act.Func(nil)).(act.Stopper).Stop(task, servertest.Drain)
	})
}

func TestNext(t *testing.T) {
	l := servertest.New(t, act.Config{})
	bad := errors.New("bad")
	l.Turn(func(task *act.Task) {
		for _, row := range []struct {
			err  error
			want act.Directive
		}{
			{nil, act.Yield},
			{io.EOF, act.Done},
			{bad, act.Failed},
			{listener.ErrTooLong, act.Failed},
			{fmt.Errorf("about %w", io.EOF), act.Failed}, // a caller that wraps it means something else
			{os.ErrDeadlineExceeded, act.Failed},
		} {
			require.Equal(t, row.want, listener.Next(task, row.err), "%v", row.err)
			if row.want == act.Failed {
				require.Equal(t, row.err, task.Err())
			}
		}
	})
}

func TestReceiveTakesOneValue(t *testing.T) {
	l := servertest.New(t, act.Config{})
	box := listener.NewMailbox[string](4)
	r := &listener.Receive[string]{From: box}
	o := spawn(l.S, r)
	l.For(0)
	require.Equal(t, act.Wait, o.directive)
	require.NoError(t, box.Send("first"))
	require.NoError(t, box.Send("second"))
	require.Equal(t, act.Done, o.over(l))
	require.Equal(t, "first", r.Value)
	l.Turn(func(task *act.Task) { require.Equal(t, act.Done, r.Act(task), "it says so again") })
	require.Equal(t, "first", r.Value)

	box.Close()
	r = &listener.Receive[string]{From: box}
	require.Equal(t, act.Done, spawn(l.S, r).over(l), "what is there can still be taken")
	require.Equal(t, "second", r.Value)
	r = &listener.Receive[string]{From: box}
	o = spawn(l.S, r)
	require.Equal(t, act.Failed, o.over(l))
	require.Equal(t, listener.ErrMailboxClosed, o.err)
	l.Turn(func(task *act.Task) { require.Equal(t, act.Failed, r.Act(task)) })
}

// A Sleep that was found finished in a turn of another cause, before its timer had fired, left that armed: used
// again, the timer stood twice in its list, which became a loop without end.
func TestAFinishedSleepMayBeUsedAgain(t *testing.T) {
	l, clock := virtual(t)
	var s listener.Sleep
	sleeps := 0
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		for sleeps < 3 {
			if sleeps > 0 && s.Act(t) == act.Wait {
				return act.Yield // it looks at the clock in every round
			}
			sleeps++
			s = listener.Sleep{For: time.Second}
		}
		return s.Act(t)
	}))
	for range 10 { // a turn or less at a time: the clock is read before each, and timers fire in passes only
		_, _ = l.S.Step(1)
		clock.Pass(time.Second / 2)
	}
	require.Equal(t, act.Done, o.over(l))
}

// What was broken: it was done at once.
func TestWithinOfANilActionPanics(t *testing.T) {
	require.PanicsWithValue(t, "listener: Within of a nil action", func() { listener.Within(time.Second, nil) })
}
