package fetch

import (
	"io"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Action is a tree of actions. In each turn the root calls its child, and that its own, down to those that wait.
func Action(s *act.Scheduler, a, b string, report func([]string, error)) {
	x := &both{a: newList(a), b: newList(b), report: report}
	x.work = listener.Within(Patience, act.All(x.a, x.b))
	s.Spawn(x)
}

type both struct {
	a, b   *list
	work   act.Action
	report func([]string, error)
}

func (x *both) Act(t *act.Task) act.Directive {
	switch d := x.work.Act(t); d {
	case act.Done:
		x.report(merge(x.a.text, x.b.text), nil)
	case act.Failed:
		x.report(nil, t.Err())
	default:
		return d // it waits, and so does this
	}
	return act.Done
}

// Close closes what has not finished when the task is dropped.
func (x *both) Close() error { return x.work.(io.Closer).Close() }
