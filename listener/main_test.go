package listener_test

import (
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestMain(m *testing.M) { servertest.Main(m) }

// start is what the calendar of a Clock says at its beginning.
var start = new(servertest.Clock).Wall()

// virtual is a Stepped whose time passes when the test says so.
func virtual(t testing.TB) (*servertest.Stepped, *servertest.Clock) {
	t.Helper()
	c := &servertest.Clock{}
	c.Pass(time.Second)
	return servertest.New(t, act.Config{Clock: c}), c
}

// pass lets time pass.
func pass(l *servertest.Stepped, c *servertest.Clock, d time.Duration) {
	c.Pass(d)
	for range 3 {
		_, _ = l.S.Step(64)
	}
	l.For(0)
}

// readable steps until c has received at least n bytes that are unread.
func readable(l *servertest.Stepped, c *listener.Conn, n int) {
	l.T.Helper()
	l.Until("input", func() bool {
		l.Turn(func(*act.Task) { _, _ = c.Peek(n) })
		return c.Buffered() >= n
	})
}

// outcome is what a task ended with.
type outcome struct {
	directive act.Directive
	err       error
	turns     int
}

// spawn runs a as a task and notes what becomes of it.
func spawn(s *act.Scheduler, a act.Action) *outcome {
	o := &outcome{}
	s.Spawn(&observed{a, o})
	return o
}

type observed struct {
	act.Action
	o *outcome
}

func (a *observed) Act(t *act.Task) act.Directive {
	a.o.turns++
	a.o.directive = a.Action.Act(t)
	if a.o.directive == act.Failed {
		a.o.err = t.Err()
		return act.Done
	}
	return a.o.directive
}

// begun steps until the task has had its first turn: what is counted from then on is counted.
func (o *outcome) begun(l *servertest.Stepped) *outcome {
	l.T.Helper()
	l.Until("its first turn", func() bool { return o.turns > 0 })
	return o
}

// over steps until the task has ended.
func (o *outcome) over(l *servertest.Stepped) act.Directive {
	l.T.Helper()
	l.Until("the end of a task", func() bool { return o.directive.Finished() })
	return o.directive
}

// echo sends back what it receives, and ends as its peer does.
func echo(c *listener.Conn) act.Func {
	return func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			d := listener.Next(t, err)
			if d.Finished() {
				_ = c.Close()
				return act.Done
			}
			return d
		}
		n, err := c.Write(in)
		c.Discard(n)
		return listener.Next(t, err)
	}
}
