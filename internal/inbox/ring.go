// Package inbox passes values from any goroutine to one consumer without a lock. It does not wake the consumer.
//
// A [Ring] is for new values, of which there may be any number: it is bounded, and a push fails when it is full. A [Room] is
// where producers wait then. A [Stack] is for objects that exist already and are in it at most once: each brings its own node,
// so a push is never refused for lack of room, and the consumer takes all at once.
//
// Both can be closed, exactly: each push either happened before and is found by the consumer, or reports false. A push neither
// allocates nor blocks. A consumer may sleep when Empty returns true, without losing a wake-up (see Ring.Empty).
package inbox

import (
	"math/bits"
	"runtime"
	"sync/atomic"
)

const (
	// apart is the distance between words of different writers: two cache lines, since processors fetch lines in pairs.
	apart = 128

	// closed is a bit of Ring.tail, so that one word decides between closing and claiming. 63 bits remain for positions:
	// 292 years at one push a nanosecond.
	closed = 1 << 63

	// spins is how often Pop looks for a value again before it yields.
	spins = 64
)

// A Ring is Dmitry Vyukov's bounded queue, from any number of goroutines to one consumer. A word of each slot says for which
// position it is ready, so producers share only the tail, and the consumer writes no word that all of them read. Use NewRing.
//
//	      head               tail
//	       v                  v
//	free | filled | claimed | free      claimed: its producer is about to fill it
type Ring[T any] struct {
	slots []slot[T] // a power of two
	_     [apart]byte
	tail  atomic.Uint64 // next position to claim, and the bit closed; producers
	_     [apart]byte
	head  atomic.Uint64 // next position to pop; written by the consumer only
	_     [apart]byte
}

// slot p%len(slots) is free for the producer of position p while turn is 2p, and filled for the consumer when it is 2p+1;
// then it is free for p+len(slots). Vyukov has one number a position, with which a full ring of one slot would look free.
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

// Push appends v. It never waits: it returns false if the ring is full or closed. Values of one goroutine keep their order.
// After true, Empty is false until the consumer has popped v. Any goroutine.
func (r *Ring[T]) Push(v T) bool {
	p, ok := r.Claim()
	if ok {
		r.Fill(p, v)
	}
	return ok
}

// Claim takes the next place for a value that Fill puts there soon: until then the consumer finds no later value. It
// returns false if the ring is full or closed. Any goroutine.
func (r *Ring[T]) Claim() (place uint64, ok bool) {
	for {
		p := r.tail.Load()
		if p&closed != 0 {
			return 0, false
		}
		turn := r.slot(p).turn.Load()
		if turn < 2*p {
			return 0, false // not popped yet since the last time round: full
		}
		if turn == 2*p && r.tail.CompareAndSwap(p, p+1) {
			return p, true
		} // else another producer got it, or Close came between
	}
}

// Fill puts v into a place that the caller has claimed.
func (r *Ring[T]) Fill(place uint64, v T) {
	s := r.slot(place)
	s.value = v
	s.turn.Store(2*place + 1)
}

// Full reports whether a Push would find no room. It is false once the ring is closed. Any goroutine.
func (r *Ring[T]) Full() bool {
	p := r.tail.Load()
	return p&closed == 0 && r.slot(p).turn.Load() < 2*p
}

// Pop takes the oldest value; false means that there is none at present. It is for the consumer only, one goroutine at a time.
//
// A producer that is interrupted between claiming its place and filling it holds up later values. While the ring is
// open, Pop and Empty then return false. Once it is closed, Pop waits for the producer, so that false means drained.
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

// await reports whether position p was claimed before Close, and waits until it is filled.
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

// Empty reports whether every value that was pushed, or has its place claimed, has been popped. Any goroutine. At least one of
// these sees the other, even after a Pop that returned false because of a claimed place:
//
//	consumer: asleep = true;  if Empty() { park }
//	producer: Push(v);        if asleep  { wake }
func (r *Ring[T]) Empty() bool {
	head := r.head.Load() // before the tail: both only rise, so equal means equal at the second load
	return head == r.tail.Load()&^closed
}

// Close makes every later Push return false. Values of earlier ones can still be popped. Any goroutine.
func (r *Ring[T]) Close() { r.tail.Or(closed) }

// Closed reports whether Close was called. Any goroutine.
func (r *Ring[T]) Closed() bool { return r.tail.Load()&closed != 0 }

// slot returns the place of position p; the closed bit does not matter.
func (r *Ring[T]) slot(p uint64) *slot[T] {
	return &r.slots[p&uint64(len(r.slots)-1)]
}
