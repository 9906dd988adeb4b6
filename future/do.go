package future

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Do spawns a on s and returns a future, at home there, of what value returns when a is Done: what a has
// found out, be it an action, a coroutine or a leaf. If a fails, so does the future, and nothing is reported
// beside; a panic of a or of value is such a failure. Being a task, a holds Run and is told of orders; if it
// is dropped, the future fails with ErrDropped.
func Do[T any](s *act.Scheduler, a act.Action, value func() T) *Future[T] {
	x := &doing[T]{a: a, value: value, to: New[T](s)}
	s.Spawn(x)
	return x.to
}

type doing[T any] struct {
	a     act.Action
	value func() T
	to    *Future[T]
}

func (x *doing[T]) Act(t *act.Task) (d act.Directive) {
	defer func() {
		if v := recover(); v != nil {
			_ = x.to.Fail(act.Recovered(v))
			d = act.Done
		}
	}()
	switch d := x.a.Act(t); d {
	case act.Done:
		x.to.settle(x.value(), nil)
	case act.Failed:
		x.to.settle(*new(T), t.Failure())
	default:
		return d
	}
	return act.Done
}

func (x *doing[T]) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := x.a.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

// Abandon tells that nothing will come; the action is left to the function that it has offloaded.
func (x *doing[T]) Abandon() act.Action {
	x.to.drop()
	return act.AbandonAction(x.a)
}

func (x *doing[T]) Close() error {
	x.to.drop()
	if c, ok := x.a.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (x *doing[T]) String() string { return act.Name(x.a) }
