package memory

import (
	"container/heap"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
)

// agenda has the tasks of one kind that are due at some time, either the fresh ones or the others, as a heap in the order
// of claims. Each entry knows its agenda and its place there.
type agenda []*entry

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool { return transition.Order(&a[i].task, &a[j].task, nil) < 0 }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.in, e.place = a, len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.in = nil
	return e
}

// agenda returns the agenda of tasks of a kind that are fresh or not.
func (s *store) agenda(kind string, fresh bool) *agenda {
	k := class{kind, fresh}
	a := s.due[k]
	if a == nil {
		a = new(agenda)
		s.due[k] = a
	}
	return a
}

// class says which tasks an agenda has.
type class struct {
	kind  string
	fresh bool
}

// put makes t the task of e, and moves e to where it is due.
func (s *store) put(e *entry, t stage.Task) {
	e.task = t
	s.count(e)
	a := s.agenda(t.Kind, transition.Fresh(&t))
	if e.in != nil && (e.in != a || !t.Runs()) {
		heap.Remove(e.in, e.place)
	}
	switch {
	case e.in != nil:
		heap.Fix(a, e.place)
	case t.Runs():
		heap.Push(a, e)
	}
}

// takeDue takes tasks out of their agendas, those that come first in the order of claims. Each has to be put back.
func (s *store) takeDue(c stage.Claim, now time.Time) (taken []*entry) {
	kinds := slices.DeleteFunc(slices.Clone(c.Kinds), func(kind string) bool { return s.paused[kind] || full(kind, 0, c.Most) })
	of := map[string]int{}
	for len(taken) < c.Limit {
		first := s.first(kinds, c.Priorities, now)
		if first == nil {
			break
		}
		kind := first.task.Kind
		if of[kind]++; full(kind, of[kind], c.Most) {
			kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == kind })
		}
		heap.Remove(first.in, first.place)
		taken = append(taken, first)
	}
	return taken
}

// full reports whether n tasks of a kind are as many as its entry in most allows, if it has one.
func full(kind string, n int, most map[string]int) bool {
	bound, ok := most[kind]
	return ok && n >= bound
}

// first returns the task that comes first of all that are due of the kinds, or nil.
func (s *store) first(kinds []string, priorities map[string]int, now time.Time) (first *entry) {
	for _, kind := range kinds {
		for _, fresh := range []bool{false, true} {
			a := *s.agenda(kind, fresh)
			if len(a) > 0 && transition.Due(&a[0].task, now) &&
				(first == nil || transition.Order(&a[0].task, &first.task, priorities) < 0) {
				first = a[0]
			}
		}
	}
	return first
}
