package act

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/daimon-go/daimon/shutdown"
)

// Seq returns an action that runs actions one after the other. It fails with the error of the first that fails; the
// rest are then never begun. An action that is an io.Closer is closed when it has finished or when the Seq is closed. A
// shutdown request is forwarded to the action that runs; actions that begin later are told of it before their first
// turn.
func Seq(actions ...Action) Action {
	mustExist("act.Seq", actions...)
	q := &seq{rest: slices.Clone(actions)}
	q.advance()
	return q
}

// All returns an action that runs actions side by side, in one task: each is called every turn, in order. It finishes
// when all have finished. If any failed, it then fails with their errors joined by errors.Join. Before that it returns
// Yield if any of them does, otherwise Wait. An action that returns Async must be the only unfinished one, since the
// function owns the turn; otherwise All panics. Use a [Call] instead.
func All(actions ...Action) Action { return newSiblings("act.All", actions, len(actions)) }

// First returns an action that runs actions side by side as [All] does, until one of them has finished, and ends as
// that one did. If several finish in one turn, the first in order counts. The others are closed. So First(work,
// timeout) bounds the time of work.
func First(actions ...Action) Action { return newSiblings("act.First", actions, 1) }

// seq is the Child that runs or has failed, without an action when all are done.
type seq struct {
	Child
	rest []Action
}

func (q *seq) Act(t *Task) Directive {
	for {
		d := q.Child.Act(t)
		if !d.Finished() || q.Action == nil {
			return d
		}
		t.s.closeAction(&q.Child)
		if d != Done {
			return d
		}
		q.advance()
	}
}

// advance goes on to the next action.
func (q *seq) advance() {
	q.Child = Child{}
	if len(q.rest) > 0 {
		q.Action, q.rest[0] = q.rest[0], nil
		q.rest = q.rest[1:]
	}
}

// String names the action that runs or has failed.
func (q *seq) String() string {
	if q.Action == nil {
		return "act.Seq"
	}
	return q.Child.String()
}

func (q *seq) Close() error {
	left := append([]Action{&q.Child}, q.rest...)
	q.rest = nil
	return closeEach(left)
}

// Abandon leaves the action that runs to its offloaded function, and closes the others.
func (q *seq) Abandon() Action {
	defer closeEach(q.rest)
	return q.Child.Abandon()
}

// siblings are actions side by side.
type siblings struct {
	name     string
	children []Action // nil: finished
	want     int      // how many must finish
	finished int
	errs     []error
	failed   Action // the first that failed; it is closed and kept for String
}

func newSiblings(name string, actions []Action, want int) *siblings {
	mustExist(name, actions...)
	return &siblings{name: name, children: slices.Clone(actions), want: min(want, len(actions))}
}

func (g *siblings) Act(t *Task) Directive {
	all := Wait
	for i, child := range g.children {
		if g.finished == g.want {
			break
		}
		if child == nil {
			continue
		}
		switch d := child.Act(t); d {
		case Wait:
		case Yield:
			all = Yield
		case Async:
			if len(g.children)-g.finished > 1 {
				panic("act: an action of All or First returned Async while others are not finished: use Call, or offload alone")
			}
			return Async
		case Failed:
			g.errs = append(g.errs, t.s.failure())
			if g.failed == nil {
				g.failed = child
			}
			fallthrough
		case Done:
			g.children[i] = nil
			g.finished++
			t.s.closeAction(child)
		default:
			return d // invalid: the scheduler panics
		}
	}
	if g.finished < g.want {
		return all
	}
	t.s.closeAction(g)
	switch len(g.errs) {
	case 0:
		return Done
	case 1:
		return t.Fail(g.errs[0])
	}
	return t.Fail(errors.Join(g.errs...))
}

func (g *siblings) Describe(d *Description) {
	for _, child := range g.children {
		d.Of(child)
	}
}

// String names the first action that runs and counts the others; if none does, it names the first that has failed.
func (g *siblings) String() string {
	running := slices.DeleteFunc(slices.Clone(g.children), func(a Action) bool { return a == nil })
	switch {
	case len(running) > 1:
		return fmt.Sprintf("%s and %d more", Name(running[0]), len(running)-1)
	case len(running) == 1:
		return Name(running[0])
	case g.failed != nil:
		return Name(g.failed)
	}
	return g.name
}

func (g *siblings) Stop(t *Task, o shutdown.Order) {
	for _, child := range g.children {
		stopAction(t, o, child)
	}
}

// Abandon forwards to the only action that has not finished.
func (g *siblings) Abandon() Action {
	for i, child := range g.children {
		if child != nil {
			g.children[i] = nil
			return abandon(child)
		}
	}
	return nil
}

// Close closes the actions that have not finished.
func (g *siblings) Close() error { return closeEach(g.children) }

// closeEach closes the actions that are io.Closers, the last first, and clears the slice. Each Close is deferred, so that
// one that panics does not keep the others open.
func closeEach(actions []Action) (err error) {
	for i, a := range actions {
		actions[i] = nil
		if c, ok := a.(io.Closer); ok {
			defer func() { err = errors.Join(err, c.Close()) }()
		}
	}
	return nil
}

func (s *Scheduler) closeAction(a Action) {
	if c, ok := a.(io.Closer); ok {
		s.close(c)
	}
}
