package process

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
		for s := to.p.rare.waiters.first; s != nil; s = s.next {
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
