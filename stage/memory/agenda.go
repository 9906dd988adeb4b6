package memory

import (
	"container/heap"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// agenda has the tasks of one kind that are due some time, as a heap: the longest due on top, of equally long ones
// the one with the lowest number. Each knows its place.
type agenda []*entry

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool { return a[i].before(a[j]) }

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

// before is the order in which tasks are claimed.
func (e *entry) before(other *entry) bool {
	if c := e.task.Due.Compare(other.task.Due); c != 0 {
		return c < 0
	}
	return e.task.ID < other.task.ID
}

// setDue puts a task in its place in the agenda of its kind; the zero Time takes it out.
func (s *Store) setDue(e *entry, due time.Time) {
	a := s.due[e.task.Kind]
	if a == nil {
		a = new(agenda)
		s.due[e.task.Kind] = a
	}
	e.task.Due = due
	switch {
	case e.place == nowhere && !due.IsZero():
		heap.Push(a, e)
	case e.place != nowhere && due.IsZero():
		heap.Remove(a, e.place)
	case e.place != nowhere:
		heap.Fix(a, e.place)
	}
}

// takeDue takes at most limit tasks out of their agendas, those of the kinds that come first. Each has to be put
// back with setDue.
func (s *Store) takeDue(kinds []string, limit int, now time.Time) (taken []*entry) {
	for len(taken) < limit {
		first := s.first(kinds)
		if first == nil || first.task.Due.After(now) {
			break
		}
		heap.Remove(s.due[first.task.Kind], first.place)
		taken = append(taken, first)
	}
	return taken
}

// first returns the task that comes first among all of the kinds, or nil.
func (s *Store) first(kinds []string) (first *entry) {
	for _, kind := range kinds {
		if a := s.due[kind]; a != nil && len(*a) > 0 && (first == nil || (*a)[0].before(first)) {
			first = (*a)[0]
		}
	}
	return first
}

// live tells whether l is the present lease of e.
func (e *entry) live(l stage.Lease, now time.Time) bool {
	return e.task.Status == stage.InProcessing && e.task.Token == l.Token && e.task.Due.After(now)
}
