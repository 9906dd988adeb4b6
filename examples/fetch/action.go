package main

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// action is a tree of actions. In each turn the root calls its child, and so on down to the actions that wait.
func action(s *act.Scheduler, a, b string, report func([]string, error)) {
	x := &both{a: newList(a), b: newList(b), report: report}
	x.Action = listener.Within(patience, act.All(x.a, x.b))
	s.Spawn(x)
}

type both struct {
	act.Child // fetches both, and is closed if the task is dropped
	a, b      *list
	report    func([]string, error)
}

func (x *both) Act(t *act.Task) act.Directive {
	switch d := x.Child.Act(t); d {
	case act.Done:
		x.report(merge(x.a.text, x.b.text), nil)
	case act.Failed:
		x.report(nil, t.Err())
	default:
		return d // it waits, and so does this
	}
	return act.Done
}
