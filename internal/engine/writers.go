package engine

import (
	"slices"

	"github.com/daimon-go/daimon/act"
)

// Writers are the tasks that wait for room in a stream, in the order in which they began to.
type Writers []writer

type writer struct {
	waker act.Waker
	low   int // woken when at most as many bytes are queued
}

// Await adds a task. One that is woken for other reasons leaves a stale Waker each time. Those go before the list grows,
// so it has room for at most about four times as many as have waited at once.
func (q *Writers) Await(w act.Waker, low int) {
	if len(*q) == cap(*q) {
		*q = slices.DeleteFunc(*q, func(x writer) bool { return x.waker.Stale() })
		if len(*q) > cap(*q)/2 {
			*q = slices.Grow(*q, len(*q)) // or each of the next calls would search it
		}
	}
	*q = append(*q, writer{w, low})
}

// Wake wakes the tasks that wait for at most queued bytes, or for more; with -1 all of them. They are forgotten.
func (q *Writers) Wake(queued int) {
	*q = slices.DeleteFunc(*q, func(x writer) bool {
		if queued <= x.low {
			x.waker.Wake()
		}
		return queued <= x.low
	})
}

// Waiting reports whether a task waits.
func (q Writers) Waiting() bool {
	for i := range q {
		if q[i].waker.Armed() {
			return true
		}
	}
	return false
}
