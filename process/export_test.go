package process

// WithBounds returns a System with bounds of its own: of a mailbox, of a turn, and of a batch.
func WithBounds(limit, messages, batch int) *System {
	sys := New()
	sys.limit, sys.messages, sys.batch = limit, messages, batch
	return sys
}

// Counted are counts since the System was made.
type Counted struct{ Ended, Dropped int64 }

// Counted returns the counts.
func (sys *System) Counted() Counted {
	n := Counted{sys.outside.ended.Load(), sys.outside.dropped.Load()}
	for _, r := range sys.runners {
		n.Ended += r.ended.Load()
		n.Dropped += r.dropped.Load()
	}
	return n
}

// ID returns the number of the process, which no other one of the System ever has; 0 for the zero Ref.
func (to Ref[M]) ID() uint64 {
	if to.p == nil {
		return 0
	}
	return to.p.id
}

// Waiters returns the number of waiters for room in the mailbox.
func (to Ref[M]) Waiters() (n int) {
	w := to.p.lock()
	defer to.p.unlock(w)
	if to.p.rare != nil {
		for s := to.p.rare.waiters.First; s != nil; s = s.Next {
			n++
		}
	}
	return n
}

// Capacity returns how many messages the memory of the mailbox is for.
func (to Ref[M]) Capacity() int { return cap(to.p.in) + cap(to.p.out) }

// HandOffs returns how often a process has handed its thread over.
func (sys *System) HandOffs() (n int64) {
	for _, r := range sys.runners {
		n += r.handed.Load()
	}
	return n
}

// Stolen returns how many processes an idle scheduler has taken from another one.
func (sys *System) Stolen() (n int64) {
	for _, r := range sys.runners {
		n += r.stolen.Load()
	}
	return n
}

// System returns the System of the process.
func (c *core) System() *System { return c.sys }
