package memory

import (
	"container/heap"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
)

// agenda has the tasks of one kind that are due at some time, as a heap in the order of claims. Each entry knows its
// place.
type agenda []*entry

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool { return transition.Order(&a[i].task, &a[j].task) < 0 }

func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *agenda) Push(x any) {
	e := x.(*entry)
	e.place = len(*a)
	*a = append(*a, e)
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	e.place = nowhere
	return e
}

// put makes t the task of e, and moves e in the agenda of its kind to where it is due.
func (s *store) put(e *entry, t stage.Task) {
	e.task = t
	a := s.due[t.Kind]
	if a == nil {
		a = new(agenda)
		s.due[t.Kind] = a
	}
	switch {
	case e.place == nowhere && t.Runs():
		heap.Push(a, e)
	case e.place != nowhere && !t.Runs():
		heap.Remove(a, e.place)
	case e.place != nowhere:
		heap.Fix(a, e.place)
	}
}

// takeDue takes at most limit tasks out of their agendas, those of the kinds that come first in the order of claims.
// Each has to be put back.
func (s *store) takeDue(kinds []string, limit int, now time.Time) (taken []*entry) {
	for len(taken) < limit {
		first := s.first(kinds)
		if first == nil || !transition.Due(&first.task, now) {
			break
		}
		heap.Remove(s.due[first.task.Kind], first.place)
		taken = append(taken, first)
	}
	return taken
}

// first returns the task that comes first among all of the kinds, or nil.
func (s *store) first(kinds []string) (first *entry) {
	for _, kind := range kinds {
		if a := s.due[kind]; a != nil && len(*a) > 0 && (first == nil || transition.Order(&(*a)[0].task, &first.task) < 0) {
			first = (*a)[0]
		}
	}
	return first
}
