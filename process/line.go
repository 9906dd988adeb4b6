package process

import "github.com/daimon-go/daimon/act"

// line has those who wait for room in a mailbox, in order. It is under the lock of the process whose mailbox it is.
type line struct {
	first, last *spot
	tasks       map[*act.Task]*spot
}

// spot is where somebody stands in line.
type spot struct {
	waiter
	in         bool
	prev, next *spot
}

// waiter is who waits for room in a mailbox.
type waiter interface {
	// roomFor is called once, on any goroutine; r is the reactor there, if there is one.
	roomFor(r *reactor)
	// absent tells whether it does not wait any more, so that no room need be kept for it.
	absent() bool
}

func (x *line) empty() bool { return x.first == nil }

// join puts w at the end. A task that is there, and has looked again, keeps its place.
func (x *line) join(w waiter) *spot {
	t, isTask := w.(remote)
	if s := x.tasks[t.t]; isTask && s != nil {
		s.waiter = w
		return s
	}
	s := &spot{waiter: w, in: true, prev: x.last}
	if s.prev != nil {
		s.prev.next = s
	} else {
		x.first = s
	}
	if x.last = s; isTask {
		if x.tasks == nil {
			x.tasks = map[*act.Task]*spot{}
		}
		x.tasks[t.t] = s
	}
	return s
}

// isLast tells whether w is at the end.
func (x *line) isLast(w waiter) bool { return x.last != nil && x.last.waiter == w }

// leave takes s out, and reports whether it was there.
func (x *line) leave(s *spot) bool {
	if !s.in {
		return false
	}
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		x.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		x.last = s.prev
	}
	s.in, s.prev, s.next = false, nil, nil
	if t, isTask := s.waiter.(remote); isTask {
		delete(x.tasks, t.t)
	}
	return true
}

// take takes those out for whom there is room, and appends them to free.
func (x *line) take(room int, free []waiter) []waiter {
	for s := x.first; s != nil && len(free) < room; s = x.first {
		if x.leave(s); !s.absent() {
			free = append(free, s.waiter)
		}
	}
	return free
}

// remote is a task that waits, with its latest waker.
type remote struct {
	wake func()
	t    *act.Task
}

func (w remote) roomFor(*reactor) { w.wake() }
func (w remote) absent() bool     { return false }

// closing is a goroutine that waits.
type closing chan struct{}

func (w closing) roomFor(*reactor) { close(w) }
func (w closing) absent() bool     { return false }

// absent is for a process that waits.
func (c *core) absent() bool {
	w := c.word.Load()
	return w&killed != 0 || w&states == dead
}

// loan is the room that a process has been lent for a question: with the question ends the wait for room.
type loan struct {
	to    *core // who asks
	at    *core // in whose line it is, while lent
	spot  *spot
	state word // 0, lent, returned
}

const (
	lent = iota + 1
	returned
)

// join has the loan wait in line at c. Under the lock.
func (x *loan) join(c *core) {
	x.at, x.spot = c, c.rare.line.join(x)
	x.state.Store(lent)
}

func (x *loan) roomFor(r *reactor) {
	if x.state.CompareAndSwap(lent, returned) {
		x.to.roomFor(r)
	}
}

func (x *loan) absent() bool { return x.state.Load() == returned || x.to.absent() }

// forgive is for the end of the question.
func (x *loan) forgive(r *reactor) {
	if x.state.Load() != lent {
		return
	}
	w := x.at.lock()
	x.at.rare.line.leave(x.spot)
	x.at.unlock(w)
	x.roomFor(r)
}
