package inbox

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

const (
	// apart is how far words of different writers are kept from each other: two cache lines, because processors fetch lines in
	// pairs.
	apart = 128

	// closed is a bit of Ring.tail, so that closing and claiming are the same word. 63 bits of positions remain: 292 years at
	// one push a nanosecond.
	closed = 1 << 63

	// spins is how often Pop looks for a value again before it yields.
	spins = 64
)

// A Ring is a bounded queue from any number of goroutines to one consumer, Dmitry Vyukov's: a word of each slot says for
// which position it is ready, so producers share only the tail and the consumer writes nothing they all read.
//
//	      head               tail
//	       v                  v
//	free | filled | claimed | free      claimed: its producer is about to fill it
//
// Use NewRing; the zero Ring cannot be used. Push and Pop do not allocate.
type Ring[T any] struct {
	slots []slot[T] // a power of two
	_     [apart]byte
	tail  atomic.Uint64 // next position to claim, and the bit closed; producers
	_     [apart]byte
	head  atomic.Uint64 // next position to pop; written by the consumer only
	_     [apart]byte
}

// slot p%len(slots) is free for the producer of position p while turn is 2p and filled for the consumer when it is 2p+1;
// then it is free for p+len(slots). Two numbers a position, where Vyukov's one would take a ring of one slot that is full
// for one that is free.
type slot[T any] struct {
	turn  atomic.Uint64
	value T
}

// NewRing returns an open, empty ring for at least capacity values: the next power of two. All of its memory is allocated
// here. It panics if capacity is less than 1.
func NewRing[T any](capacity int) *Ring[T] {
	if capacity < 1 {
		panic("inbox: a ring needs room for at least one value")
	}
	r := &Ring[T]{slots: make([]slot[T], 1<<bits.Len(uint(capacity-1)))}
	for p := range r.slots {
		r.slots[p].turn.Store(2 * uint64(p))
	}
	return r
}

// Push adds v behind what is there and reports whether it did: false means that the ring is full or closed; it never
// waits. Any goroutine may call it. Values of one goroutine keep their order.
//
// After it has returned true, Empty is false until the consumer has popped v.
func (r *Ring[T]) Push(v T) bool {
	for {
		p := r.tail.Load()
		if p&closed != 0 {
			return false
		}
		s := r.slot(p)
		turn := s.turn.Load()
		if turn < 2*p {
			return false // not popped yet since the last time round: full
		}
		if turn > 2*p || !r.tail.CompareAndSwap(p, p+1) {
			continue // another producer got it, or Close came between
		}
		s.value = v
		s.turn.Store(2*p + 1)
		return true
	}
}

// Pop takes the oldest value; false means that there is none to be had now. Only the consumer may call it, one goroutine
// at a time. The ring keeps no reference to the value.
//
// A producer that is interrupted between claiming its place and filling it holds up what was pushed behind it. While the
// ring is open Pop then reports false and Empty too: the consumer comes back. Once it is closed Pop waits for the
// producer, so that false means drained.
func (r *Ring[T]) Pop() (v T, ok bool) {
	p := r.head.Load()
	s := r.slot(p)
	if s.turn.Load() != 2*p+1 && !r.await(s, p) {
		return v, false
	}
	var zero T
	v, s.value = s.value, zero
	s.turn.Store(2 * (p + uint64(len(r.slots))))
	r.head.Store(p + 1) // last: a ring that is seen to be empty has room
	return v, true
}

// await waits for position p to be filled if it is among the last that were claimed before Close, and reports whether it
// was.
func (r *Ring[T]) await(s *slot[T], p uint64) bool {
	tail := r.tail.Load()
	if tail&closed == 0 || tail == closed|p {
		return false
	}
	for spun := 0; s.turn.Load() != 2*p+1; spun++ {
		if spun >= spins {
			runtime.Gosched() // the producer may be waiting for this very processor
		}
	}
	return true
}

// Empty reports whether every value pushed, or about to be, has been popped. Any goroutine may call it. A consumer may
// sleep after it has said that it sleeps and then found Empty true; a producer looks after Push whether it sleeps:
//
//	consumer: asleep = true;  if Empty() { park }
//	producer: Push(v);        if asleep  { wake }
//
// Both are sequentially consistent atomics, so at least one sees the other. That a claimed place counts as a value is what
// makes it safe with Pop, which may have said false because of it.
func (r *Ring[T]) Empty() bool {
	head := r.head.Load() // before the tail: both only rise, so equal means equal at the second load
	return head == r.tail.Load()&^closed
}

// Close makes every Push from now on fail. What was pushed stays to be popped: a Push that returned true, or will, is seen
// by the Pops that follow. Any goroutine may call it, more than once.
func (r *Ring[T]) Close() { r.tail.Or(closed) }

// Closed reports whether Close was called. Any goroutine may call it.
func (r *Ring[T]) Closed() bool { return r.tail.Load()&closed != 0 }

// slot returns the place of position p; the closed bit does not matter.
func (r *Ring[T]) slot(p uint64) *slot[T] {
	return &r.slots[p&uint64(len(r.slots)-1)]
}
