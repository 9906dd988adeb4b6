package sim

import (
	"container/heap"
	"time"
)

// event is something that is going to happen. fire is called once, when the world's clock has reached its time.
type event interface {
	fire()
}

// appointment is an event with its time. Events at equal times keep the order in which they were added.
type appointment struct {
	at    time.Duration
	order uint64
	event event
}

// agenda is a heap of appointments. They cannot be cancelled: an event that may be obsolete checks that itself when it fires.
type agenda struct {
	all  appointments
	made uint64
}

func (g *agenda) add(at time.Duration, e event) {
	g.made++
	heap.Push(&g.all, appointment{at, g.made, e})
}

// next returns when the next event is due; false if there is none.
func (g *agenda) next() (time.Duration, bool) {
	if len(g.all) == 0 {
		return 0, false
	}
	return g.all[0].at, true
}

// take removes and returns the next event.
func (g *agenda) take() event { return heap.Pop(&g.all).(appointment).event }

// appointments implement heap.Interface.
type appointments []appointment

func (a appointments) Len() int { return len(a) }
func (a appointments) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a appointments) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *appointments) Push(x any)   { *a = append(*a, x.(appointment)) }

func (a *appointments) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	(*a)[last] = appointment{}
	*a = (*a)[:last]
	return x
}
