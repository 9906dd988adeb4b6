package process

import (
	"slices"

	"github.com/daimon-go/daimon/act"
)

// line has those who wait for room in a mailbox, in order. It is under the lock of the process whose mailbox it is.
type line struct {
	waiters []waiter
	gone    uint32               // how many have stood before the first
	places  map[*act.Task]uint32 // of tasks: how many stood before them when they came, ever
}

// waiter is who waits for room in a mailbox.
type waiter interface {
	// roomFor is called once, on any goroutine; r is the reactor there, if there is one.
	roomFor(r *reactor)
	// absent tells whether it does not wait any more, so that no room need be kept for it.
	absent() bool
}

// join puts w at the end. A task that is there, and has looked again, keeps its place.
func (x *line) join(w waiter) {
	t, isTask := w.(remote)
	if !isTask {
		x.waiters = append(x.waiters, w)
		return
	}
	if place, there := x.places[t.t]; there {
		x.waiters[place-x.gone] = w
		return
	}
	if x.places == nil {
		x.places = map[*act.Task]uint32{}
	}
	x.places[t.t] = x.gone + uint32(len(x.waiters))
	x.waiters = append(x.waiters, w)
}

// isLast tells whether w is at the end.
func (x *line) isLast(w waiter) bool {
	n := len(x.waiters)
	return n > 0 && x.waiters[n-1] == w
}

// leave takes w out. The others keep their places.
func (x *line) leave(w waiter) {
	if i := slices.Index(x.waiters, w); i >= 0 {
		x.waiters[i] = nobody{}
	}
	n := len(x.waiters)
	for n > 0 && x.waiters[n-1] == waiter(nobody{}) {
		n--
	}
	x.waiters = x.waiters[:n]
}

// take takes those out for whom there is room, and appends them to free.
func (x *line) take(room int, free []waiter) []waiter {
	n := 0
	for ; n < len(x.waiters) && len(free) < room; n++ {
		w := x.waiters[n]
		if t, isTask := w.(remote); isTask {
			delete(x.places, t.t)
		}
		if !w.absent() {
			free = append(free, w)
		}
	}
	x.waiters = slices.Delete(x.waiters, 0, n)
	x.gone += uint32(n)
	return free
}

// remote is a task that waits, with its latest waker.
type remote struct {
	act.Remote
	t *act.Task
}

func (w remote) roomFor(*reactor) { w.Wake() }
func (w remote) absent() bool     { return false }

// closing is a goroutine that waits.
type closing chan struct{}

func (w closing) roomFor(*reactor) { close(w) }
func (w closing) absent() bool     { return false }

// nobody has been in line.
type nobody struct{}

func (nobody) roomFor(*reactor) {}
func (nobody) absent() bool     { return true }

// absent is for a process that waits.
func (c *core) absent() bool {
	w := c.word.Load()
	return w&killed != 0 || w&states == dead
}
