package wheel

import "math/bits"

const (
	groupBits = 6                                // bits of a deadline that one level decides
	slots     = 1 << groupBits                   // of a level: as many as its bitmap has bits
	levels    = (63 + groupBits - 1) / groupBits // 11: every int64 that is not negative

	// nextScan is how many nodes of a slot Next compares before it is content with the slot's start.
	nextScan = 16
)

// A Node is a deadline, in one Wheel at a time. It is meant to be a field of what waits, so that arming allocates nothing.
// The zero Node is not armed. An armed Node must not be copied.
type Node[T any] struct {
	next, prev *Node[T] // a ring; both nil: not armed
	when       int64    // >= 0
	Of         T        // whose deadline it is; the wheel never looks at it
}

// Armed reports whether the node is in a wheel.
func (n *Node[T]) Armed() bool { return n.next != nil }

// When returns the deadline that the node was last armed for, 0 if never.
func (n *Node[T]) When() int64 { return n.when }

// A Wheel is a set of armed nodes, for one goroutine at a time. The zero Wheel is empty and at time 0. It takes 5.7 KB,
// whatever is in it.
type Wheel[T any] struct {
	// elapsed is the time reached. No node in a slot has an earlier deadline, so a node's place follows from its deadline
	// and elapsed: see place.
	elapsed int64

	occupied uint16                  // bit l: level l has a slot that is not empty
	bitmaps  [levels]uint64          // bit s: slot s of this level is not empty
	slots    [levels][slots]*Node[T] // each the oldest of a ring in arming order
	armed    int                     // nodes
	late     *Node[T]                // armed for a time before elapsed; also in arming order
}

// Arm puts the node into the wheel, to be popped at when, in nanoseconds since the caller's 0; a negative when is 0. A
// node that is armed in this wheel is moved, behind all others of its new deadline. A deadline before the time reached is
// kept as it is: the node is late, see Order in the package's documentation. O(1).
func (w *Wheel[T]) Arm(n *Node[T], when int64) {
	if n.next != nil {
		w.remove(n)
	}
	n.when = max(when, 0)
	w.armed++
	w.insert(n)
}

// Armed returns how many nodes are armed.
func (w *Wheel[T]) Armed() int { return w.armed }

// Disarm takes the node out and reports whether it was armed. A node that is armed in another wheel is a bug: Disarm panics
// if the ring that the node would be in here is empty, and otherwise corrupts both wheels. O(1).
func (w *Wheel[T]) Disarm(n *Node[T]) bool {
	if n.next == nil {
		return false
	}
	w.remove(n)
	return true
}

// Pop disarms and returns the next node that is due at now, nil if there is none: call it until then. The time reached
// rises to the node's deadline, or to now with nil. If now is before the time reached, Pop returns nil and does nothing.
//
// Nodes may be armed and disarmed between two Pops. One that is armed for a time not after now is popped in the same loop;
// a caller that does so for each node bounds the loop itself.
//
// Pop costs a ring operation for each node that comes down a level, at most ten times for a node between Arm and Pop.
func (w *Wheel[T]) Pop(now int64) *Node[T] {
	if now < w.elapsed {
		return nil
	}
	if n := w.late; n != nil { // before elapsed, hence before all others
		w.remove(n)
		return n
	}
	for w.occupied != 0 { // twice at most: a cascade leaves the first node at level 0, or after now
		level, slot := w.first()
		start := w.start(level, slot)
		if start > now {
			break
		}
		if level == 0 {
			w.elapsed = start // which is the deadline of all in this slot
			n := w.slots[0][slot]
			w.remove(n)
			return n
		}
		w.cascade(level, slot, now)
	}
	w.elapsed = now
	return nil
}

// Next returns a time not later than the earliest deadline, false if nothing is armed. It is the earliest deadline if no
// more than 16 nodes share the first slot, and always if that is of level 0. Otherwise it may be earlier, but is after the
// time reached: Pop then returns nil, and the following Next is better, after at most ten such calls exact. If something is
// due already, the result is not after the time reached. Next changes nothing. O(1).
func (w *Wheel[T]) Next() (when int64, ok bool) {
	if w.late != nil {
		return earliest(w.late, 0), true
	}
	if w.occupied == 0 {
		return 0, false
	}
	level, slot := w.first()
	start := w.start(level, slot)
	if level == 0 {
		return start, true
	}
	return earliest(w.slots[level][slot], start), true
}

// earliest returns the least deadline of a ring, or floor if it is long.
func earliest[T any](ring *Node[T], floor int64) int64 {
	least, seen := ring.when, 1
	for n := ring.next; n != ring; n = n.next {
		if seen == nextScan {
			return floor
		}
		least, seen = min(least, n.when), seen+1
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

// cascade moves the first slot's nodes down. elapsed rises to the earliest of them, at most to now, and not just to the
// slot's start, so a node alone in its slot comes down once and not once a level. Nodes of one deadline always share their
// slot; they are moved in arming order, and stay in it.
func (w *Wheel[T]) cascade(level, slot int, now int64) {
	ring := w.slots[level][slot]
	w.slots[level][slot] = nil
	w.vacate(level, slot)

	least := ring.when
	for n := ring.next; n != ring; n = n.next {
		least = min(least, n.when)
	}
	w.elapsed = min(least, now)

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

// insert puts a node that is in no ring into the one where its deadline belongs.
func (w *Wheel[T]) insert(n *Node[T]) {
	if n.when < w.elapsed {
		add(&w.late, n)
		return
	}
	level, slot := w.place(n.when)
	add(&w.slots[level][slot], n)
	w.bitmaps[level] |= 1 << uint(slot)
	w.occupied |= 1 << uint(level)
}

// remove undoes Arm. place finds the node again: elapsed enters a slot that is not empty only with a cascade, and as long as
// it is before the slot, the highest group that differs is the same. Only a late node has a deadline before elapsed.
func (w *Wheel[T]) remove(n *Node[T]) {
	w.armed--
	if n.when < w.elapsed {
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
