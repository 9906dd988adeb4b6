package monitor

import "iter"

// slots has the watchers of one poller, by the numbers in the tags of their events. It grows by chunks: an array that is
// copied to grow leaves several times its size to the collector.
//
// A slot is where an event finds the watcher of its descriptor. Its generation is part of the event's tag: an event of a
// descriptor that was closed meanwhile is ignored, even if the number or the slot is in use again.
type slots struct {
	chunks []*chunk
	spare  []uint32           // numbers of slots that are free, the last freed first
	others map[uint32]watcher // the few watchers that are not sockets: an interface in each slot would take more
}

// chunk has slotChunk slots: as many as fit into the size class of 2048 bytes, with the word that the runtime puts before
// them. With a struct for each slot they would take a third more.
type chunk struct {
	sockets     [slotChunk]*socket // nil: the slot is free, or others has the watcher
	generations [slotChunk]uint32
}

const slotChunk = 170

// place returns where slot index lies.
func (x *slots) place(index uint32) (c *chunk, i uint32) {
	return x.chunks[index/slotChunk], index % slotChunk
}

// len returns how many slots there are, in use or not.
func (x *slots) len() int { return len(x.chunks) * slotChunk }

// take returns the number of a slot that was free and is now w's.
func (x *slots) take(w watcher) (index uint32) {
	if len(x.spare) == 0 {
		first := uint32(x.len())
		x.chunks = append(x.chunks, &chunk{})
		for i := range uint32(slotChunk) {
			x.spare = append(x.spare, first+slotChunk-1-i)
		}
	}
	n := len(x.spare) - 1
	index, x.spare = x.spare[n], x.spare[:n]
	if k, ok := w.(*socket); ok {
		c, i := x.place(index)
		c.sockets[i] = k
	} else {
		x.others[index] = w
	}
	return index
}

// free frees a slot, so that further events find nobody.
func (x *slots) free(index uint32) {
	c, i := x.place(index)
	c.sockets[i] = nil
	c.generations[i]++
	delete(x.others, index)
	x.spare = append(x.spare, index)
}

// tag returns what the events of a slot say.
func (x *slots) tag(index uint32) uint64 {
	c, i := x.place(index)
	return uint64(c.generations[i])<<32 | uint64(index)
}

// find returns the watcher that an event with this tag is for, nil if it is gone.
func (x *slots) find(tag uint64) watcher {
	index := uint32(tag)
	c, i := x.place(index)
	switch {
	case c.generations[i] != uint32(tag>>32):
		return nil
	case c.sockets[i] != nil:
		return c.sockets[i]
	}
	return x.others[index]
}

// sockets are the sockets in some of the slots, in order. They may be closed meanwhile.
func (x *slots) sockets(from, end int) iter.Seq[*socket] {
	return func(yield func(*socket) bool) {
		for index := from; index < end; index++ {
			c, i := x.place(uint32(index))
			if k := c.sockets[i]; k != nil && !yield(k) {
				return
			}
		}
	}
}
