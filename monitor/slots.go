package monitor

import "iter"

// slots has the watchers of one poller, by the numbers in the tags of their events. It grows by chunks: an array that is
// copied to grow leaves several times its size to the collector.
type slots struct {
	chunks []*[slotChunk]slot
	spare  []uint32           // numbers of slots that are free, the last freed first
	others map[uint32]watcher // the few watchers that are not sockets: an interface in each slot would take more
}

// slot is where an event finds the watcher of its descriptor. The generation is part of the event's tag: an event of a
// descriptor that was closed meanwhile is ignored, even if the number or the slot is in use again.
type slot struct {
	socket     *socket // nil: it is free, or others has the watcher
	generation uint32
}

// slotChunk is how many slots fit into the size class of 2048 bytes, with the word that the runtime puts before them.
const slotChunk = 127

func (x *slots) at(index uint32) *slot { return &x.chunks[index/slotChunk][index%slotChunk] }

// len returns how many slots there are, in use or not.
func (x *slots) len() int { return len(x.chunks) * slotChunk }

// take returns the number of a slot that was free and is now w's.
func (x *slots) take(w watcher) (index uint32) {
	if len(x.spare) == 0 {
		first := uint32(x.len())
		x.chunks = append(x.chunks, new([slotChunk]slot))
		for i := range uint32(slotChunk) {
			x.spare = append(x.spare, first+slotChunk-1-i)
		}
	}
	n := len(x.spare) - 1
	index, x.spare = x.spare[n], x.spare[:n]
	if k, ok := w.(*socket); ok {
		x.at(index).socket = k
	} else {
		x.others[index] = w
	}
	return index
}

// free frees a slot, so that further events find nobody.
func (x *slots) free(index uint32) {
	sl := x.at(index)
	sl.generation++
	sl.socket = nil
	delete(x.others, index)
	x.spare = append(x.spare, index)
}

// tag returns what the events of a slot say.
func (x *slots) tag(index uint32) uint64 { return uint64(x.at(index).generation)<<32 | uint64(index) }

// find returns the watcher that an event with this tag is for, nil if it is gone.
func (x *slots) find(tag uint64) watcher {
	index := uint32(tag)
	sl := x.at(index)
	switch {
	case sl.generation != uint32(tag>>32):
		return nil
	case sl.socket != nil:
		return sl.socket
	}
	return x.others[index]
}

// sockets are the sockets in some of the slots, in order. They may be closed meanwhile.
func (x *slots) sockets(from, end int) iter.Seq[*socket] {
	return func(yield func(*socket) bool) {
		for i := from; i < end; i++ {
			if k := x.at(uint32(i)).socket; k != nil && !yield(k) {
				return
			}
		}
	}
}
