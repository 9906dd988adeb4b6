package process

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
