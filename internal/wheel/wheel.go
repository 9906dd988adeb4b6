package wheel

import (
	"math"
	"math/bits"
)

const (
	groupBits = 6                                // bits of a deadline that one level decides
	slots     = 1 << groupBits                   // of a level: as many as its bitmap has bits
	levels    = (63 + groupBits - 1) / groupBits // 11: every int64 that is not negative

	// nextScan is how many nodes of a slot Next compares before it is content with the slot's start.
	nextScan = 16
)

// A Node is a deadline, in one Wheel at a time. It is meant to be a field of the waiter, so that arming allocates nothing.
// The zero Node is not armed. An armed Node must not be copied.
type Node[T any] struct {
	next, prev *Node[T] // a ring; both nil: not armed
	when       int64    // >= 0; while the node is late, the complement of its deadline, which is less than 0
	Of         T        // whose deadline it is; the wheel never looks at it
}

// Armed reports whether the node is in a wheel.
func (n *Node[T]) Armed() bool { return n.next != nil }

// When returns the deadline that the node was last armed for, 0 if never.
func (n *Node[T]) When() int64 { return n.when ^ n.when>>63 }

// A Wheel is a set of armed nodes, for one goroutine at a time. The zero Wheel is empty and at time 0. It takes 5.7 KB,
// whatever is in it.
type Wheel[T any] struct {
	// elapsed is the time reached. No node in a slot has an earlier deadline, so a node's place follows from its deadline
	// and elapsed: see place.
	elapsed int64
	asked   int64 // the latest now of Pop; elapsed <= asked
	open    bool  // the loop of Pops up to asked has not come to its end

	occupied uint16                  // bit l: level l has a slot that is not empty
	bitmaps  [levels]uint64          // bit s: slot s of this level is not empty
	slots    [levels][slots]*Node[T] // each the oldest of a ring in arming order
	armed    int                     // nodes
	late     *Node[T]                // armed for a time that was asked for before; in arming order, but up to last sorted
	last     *Node[T]                // the latest of late that belongs to the loop; nil: none does
}

// Arm puts the node into the wheel, to be popped at when, in nanoseconds since the caller's 0; a negative when is 0. A node that
// is armed in this wheel is moved, after all others of its new deadline. A node whose deadline Pop has been asked for already is
// late: see Order in the package's documentation. O(1).
func (w *Wheel[T]) Arm(n *Node[T], when int64) {
	if n.next != nil {
		w.remove(n)
	}
	n.when = max(when, 0)
	w.armed++
	if n.when <= w.asked {
		n.when = ^n.when
		add(&w.late, n)
		return
	}
	w.insert(n)
}

// Armed returns how many nodes are armed.
func (w *Wheel[T]) Armed() int { return w.armed }

// Disarm takes the node out and reports whether it was armed. One that is armed in another wheel corrupts both, unless Disarm
// notices it and panics. O(1).
func (w *Wheel[T]) Disarm(n *Node[T]) bool {
	if n.next == nil {
		return false
	}
	w.remove(n)
	return true
}

// Pop disarms and returns the next node that is due at now, nil if there is none: call it until then. If now is before that of an
// earlier call, Pop returns nil and does nothing.
//
// Nodes may be armed and disarmed between two Pops. One that is armed for a time not after now waits for the next loop, so
// that each loop has an end. A caller may stop before it: then the next calls go on, whatever their now.
//
// Pop costs a ring operation for each node that comes down a level, at most ten times for a node between Arm and Pop. Late nodes
// come down twice.
func (w *Wheel[T]) Pop(now int64) *Node[T] {
	for now >= w.asked {
		if !w.open {
			w.open, w.asked = true, now
			w.sortLate()
		}
		if n := w.take(); n != nil {
			return n
		}
		w.elapsed, w.open = w.asked, false
		if w.asked == now {
			break
		} // else it was the end of an earlier loop
	}
	return nil
}

// sortLate sorts the late nodes by their deadlines, and has all of them belong to the loop.
func (w *Wheel[T]) sortLate() {
	if w.late == nil {
		return
	}
	if w.late.next != w.late {
		sorter := Wheel[T]{asked: math.MaxInt64}
		for n := w.late; n != nil; n = w.late {
			drop(&w.late, n)
			n.when = ^n.when
			sorter.insert(n)
		}
		for n := sorter.take(); n != nil; n = sorter.take() {
			n.when = ^n.when
			add(&w.late, n)
		}
	}
	w.last = w.late.prev
}

// take disarms and returns the next node of the loop.
func (w *Wheel[T]) take() *Node[T] {
	if w.last != nil { // late, hence before all others
		n := w.late
		w.remove(n)
		return n
	}
	for w.occupied != 0 { // twice at most: a cascade leaves the first node at level 0, or after now
		level, slot := w.first()
		start := w.start(level, slot)
		if start > w.asked {
			break
		}
		if level == 0 {
			w.elapsed = start // which is the deadline of all in this slot
			n := w.slots[0][slot]
			w.remove(n)
			return n
		}
		w.cascade(level, slot)
	}
	return nil
}

// Next returns a time not later than the earliest deadline, false if nothing is armed. It is exact if no more than 16 nodes
// share the first slot, or if that is of level 0. Otherwise it may be earlier, but is after the time reached: Pop then returns
// nil, and after at most ten such calls Next is exact. If something is due, the result is not after the time reached. O(1).
func (w *Wheel[T]) Next() (when int64, ok bool) {
	when = math.MaxInt64
	if w.occupied != 0 {
		level, slot := w.first()
		if when = w.start(level, slot); level > 0 {
			when = earliest(w.slots[level][slot], when)
		}
	}
	if w.late != nil {
		when = min(when, earliest(w.late, 0))
	}
	return when, w.armed > 0
}

// earliest returns the least deadline of a ring, or floor if it is long.
func earliest[T any](ring *Node[T], floor int64) int64 {
	least, seen := ring.When(), 1
	for n := ring.next; n != ring; n = n.next {
		if seen == nextScan {
			return floor
		}
		least, seen = min(least, n.When()), seen+1
	}
	return least
}

// first returns the slot with the earliest deadlines. A node of level l differs from elapsed in group l and in none above,
// so all of level l are before all of level l+1, and slots are in order of time, without wrapping.
func (w *Wheel[T]) first() (level, slot int) {
	level = bits.TrailingZeros16(w.occupied)
	return level, bits.TrailingZeros64(w.bitmaps[level])
}

// start returns the earliest deadline that belongs into a slot: elapsed down to this level's group, then the slot's
// number, then zeros.
func (w *Wheel[T]) start(level, slot int) int64 {
	shift := uint(level) * groupBits
	above := uint64(w.elapsed) >> (shift + groupBits) << (shift + groupBits)
	return int64(above | uint64(slot)<<shift)
}

// place returns where a deadline that is not before elapsed belongs: the level is the highest group of bits in which the
// two differ, the slot is that group.
func (w *Wheel[T]) place(when int64) (level, slot int) {
	level = (bits.Len64(uint64(when^w.elapsed)|1) - 1) / groupBits
	return level, int(when>>(uint(level)*groupBits)) & (slots - 1)
}

// cascade moves the first slot's nodes down. elapsed rises to the earliest of them, at most to asked, and not just to the
// slot's start, so a node alone in its slot comes down once and not once a level. Nodes of one deadline always share their
// slot; they are moved in arming order, and stay in it.
func (w *Wheel[T]) cascade(level, slot int) {
	ring := w.slots[level][slot]
	w.slots[level][slot] = nil
	w.vacate(level, slot)

	least := ring.when
	for n := ring.next; n != ring; n = n.next {
		least = min(least, n.when)
	}
	w.elapsed = min(least, w.asked)

	last := ring.prev
	for n := ring; ; {
		next := n.next
		w.insert(n)
		if n == last {
			return
		}
		n = next
	}
}

// insert puts a node that is in no ring into the slot where its deadline belongs.
func (w *Wheel[T]) insert(n *Node[T]) {
	level, slot := w.place(n.when)
	add(&w.slots[level][slot], n)
	w.bitmaps[level] |= 1 << uint(slot)
	w.occupied |= 1 << uint(level)
}

// remove undoes Arm. place finds the node again: elapsed enters a slot that is not empty only with a cascade, and as long as
// it is before the slot, the highest group that differs is the same.
func (w *Wheel[T]) remove(n *Node[T]) {
	w.armed--
	if n.when < 0 {
		n.when = ^n.when
		if w.last == n {
			if w.last = n.prev; n == w.late {
				w.last = nil // it was the only one of the loop
			}
		}
		drop(&w.late, n)
		return
	}
	level, slot := w.place(n.when)
	drop(&w.slots[level][slot], n)
	if w.slots[level][slot] == nil {
		w.vacate(level, slot)
	}
}

// vacate notes that a slot has become empty.
func (w *Wheel[T]) vacate(level, slot int) {
	w.bitmaps[level] &^= 1 << uint(slot)
	if w.bitmaps[level] == 0 {
		w.occupied &^= 1 << uint(level)
	}
}

// add makes n the youngest of a ring.
func add[T any](ring **Node[T], n *Node[T]) {
	oldest := *ring
	if oldest == nil {
		n.next, n.prev = n, n
		*ring = n
		return
	}
	youngest := oldest.prev
	n.next, n.prev = oldest, youngest
	youngest.next, oldest.prev = n, n
}

// drop takes n out of its ring.
func drop[T any](ring **Node[T], n *Node[T]) {
	switch {
	case *ring == nil:
		panic("wheel: this node is armed in another wheel")
	case n.next == n:
		*ring = nil
	default:
		n.prev.next, n.next.prev = n.next, n.prev
		if *ring == n {
			*ring = n.next
		}
	}
	n.next, n.prev = nil, nil
}
