package future

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/panics"
)

// Do spawns a as a task of s and returns a future whose home is s. When a is Done, value is called on the thread of s,
// and the future is resolved with its result. When a fails, or a or value panics, the future fails with that error, and
// nothing else is reported. The task keeps Run from returning and is told of a shutdown. If it is dropped, the future
// fails with [act.ErrDropped]. Do must be called on the thread of s. It panics if a is nil.
func Do[T any](s *act.Scheduler, a act.Action, value func() T) *Future[T] {
	if a == nil {
		panic("future: Do of a nil action")
	}
	x := &doing[T]{Child: act.Child{Action: a}, value: value, to: New[T](s)}
	s.Spawn(x)
	return x.to
}

type doing[T any] struct {
	kind
	act.Child
	value func() T
	to    *Future[T]
}

func (x *doing[T]) Act(t *act.Task) (d act.Directive) {
	defer func() {
		if v := recover(); v != nil {
			_ = x.to.Fail(panics.Recovered(v))
			d = act.Done
		}
	}()
	switch d := x.Child.Act(t); d {
	case act.Done:
		x.to.settle(x.value(), nil)
	case act.Failed:
		x.to.settle(*new(T), t.Err())
	default:
		return d
	}
	return act.Done
}

// Abandon fails the future. The action is left to the function that it has offloaded.
func (x *doing[T]) Abandon() act.Action {
	x.to.drop()
	return x.Child.Abandon()
}

func (x *doing[T]) Close() error {
	x.to.drop()
	return x.Child.Close()
}

// Go calls fn, which may block, on another goroutine, through the Group's [act.Executor], and returns a future of its
// result whose home is s. Like the F of an [act.Call], fn runs in parallel with the turns of s: it must touch only what
// it captured by value. A panic in fn fails the future. Run does not return before fn does. During shutdown Run waits
// for fn within the bounds of the policy; if fn takes longer, the future fails with [act.ErrDropped]. Go must be called
// on the thread of s.
func Go[T any](s *act.Scheduler, fn func() (T, error)) *Future[T] {
	call := &act.Call[T]{F: fn}
	return Do(s, call, func() T { return call.Value })
}
