package sim

import "time"

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

func (a *appointment) before(b *appointment) bool {
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// agenda is a binary heap of appointments. They cannot be cancelled: an event that may be obsolete checks that itself
// when it fires.
type agenda struct {
	heap []appointment
	made uint64
}

func (g *agenda) add(at time.Duration, e event) {
	g.made++
	g.heap = append(g.heap, appointment{at, g.made, e})
	h, i := g.heap, len(g.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].before(&h[i]) {
			return
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
}

// next returns when the next event is due; false if there is none.
func (g *agenda) next() (time.Duration, bool) {
	if len(g.heap) == 0 {
		return 0, false
	}
	return g.heap[0].at, true
}

// take removes and returns the next event.
func (g *agenda) take() event {
	h := g.heap
	first, last := h[0].event, len(h)-1
	h[0], h[last] = h[last], appointment{}
	h = h[:last]
	g.heap = h
	for i := 0; ; {
		least := i
		for _, down := range [...]int{2*i + 1, 2*i + 2} {
			if down < len(h) && h[down].before(&h[least]) {
				least = down
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
