package act

import (
	"math"
	"unsafe"
)

// queue is a FIFO of tasks, linked through Task.next. The zero queue is empty. In the last task, and in a task in no
// queue, next means nothing: clearing it would cost every turn a store.
type queue struct {
	head, tail *Task // tail only if there is a head
}

func (q *queue) push(t *Task) {
	if q.head == nil {
		q.head, q.tail = t, t
		return
	}
	q.tail.next, q.tail = t, t
}

// pop returns nil when q is empty.
func (q *queue) pop() *Task {
	t := q.head
	switch t {
	case nil:
	case q.tail:
		q.head = nil
	default:
		q.head = t.next
	}
	return t
}

func (q *queue) empty() bool { return q.head == nil }

// slab allocates Tasks and knows all of them. They are not freed before the scheduler, since Wakers may point to them for
// any length of time.
type slab struct {
	chunks []*[chunk]Task
	spare  *Task // the latest first: its line is still in the cache
}

// chunk is how many Tasks are allocated at a time: as many as fit into the size class of 4096 bytes, with the word that the
// runtime puts before them. With one more, each would take 76 bytes.
const chunk = 63

func (b *slab) get(s *Scheduler) *Task {
	if b.spare == nil {
		b.grow(s)
	}
	t := b.spare
	b.spare, t.next = t.next, nil
	return t
}

func (b *slab) grow(s *Scheduler) {
	c := new([chunk]Task)
	b.chunks = append(b.chunks, c)
	for i := range c {
		t := &c[len(c)-1-i]
		t.s, t.chunk = s, uint16(min(len(b.chunks)-1, math.MaxUint16))
		b.put(t)
	}
}

// place returns the number of t among all Tasks of its scheduler, from 1, and 0 beyond the first four million. It never
// changes.
func (b *slab) place(t *Task) uint32 {
	first := &b.chunks[t.chunk][0]
	n := (uintptr(unsafe.Pointer(t)) - uintptr(unsafe.Pointer(first))) / unsafe.Sizeof(*t)
	if n >= chunk {
		return 0
	}
	return uint32(t.chunk)*chunk + uint32(n) + 1
}

func (b *slab) put(t *Task) {
	t.state = free
	t.next, b.spare = b.spare, t
}

// all calls visit for each task in use, in the order of their places, so that the same history gives the same order.
func (b *slab) all(visit func(*Task)) {
	for i := 0; i < len(b.chunks); i++ { // visit may spawn
		for j := range b.chunks[i] {
			if t := &b.chunks[i][j]; t.state != free {
				visit(t)
			}
		}
	}
}
