package memory

import (
	"container/heap"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
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

func (s *tasks) agenda(kind string, fresh bool) *agenda {
	k := class{kind, fresh}
	a := s.due[k]
	if a == nil {
		a = new(agenda)
		s.due[k] = a
	}
	return a
}

type class struct {
	kind  string
	fresh bool
}

// put makes t the task of e, and moves e to where it is due.
func (s *tasks) put(e *entry, t store.Task) {
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

// takeDue takes tasks out of their agendas, the first ones in the order of claims. Each has to be put back.
func (s *tasks) takeDue(c store.Claim, now time.Time) (taken []*entry) {
	var ready []*agenda
	for _, kind := range transition.Kinds(c) {
		for _, fresh := range []bool{false, true} {
			if a := s.due[class{kind, fresh}]; a != nil && !s.paused[kind] && a.ready(now) {
				ready = append(ready, a)
			}
		}
	}
	of := map[string]int{}
	for len(taken) < c.Limit && len(ready) > 0 {
		a := slices.MinFunc(ready, func(a, b *agenda) int { return transition.Order(&(*a)[0].task, &(*b)[0].task, c.Priorities) })
		kind := (*a)[0].task.Kind
		bound, bounded := c.Most[kind]
		if !bounded || of[kind] < bound {
			of[kind]++
			taken = append(taken, heap.Pop(a).(*entry))
			if a.ready(now) {
				continue
			}
		}
		ready = slices.DeleteFunc(ready, func(other *agenda) bool { return other == a })
	}
	return taken
}

func (a agenda) ready(now time.Time) bool { return len(a) > 0 && transition.Due(&a[0].task, now) }
