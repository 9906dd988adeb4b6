package process

// queue has the processes of one reactor that are queued there: a list, so that one can be taken out of the middle,
// and none is ever too many. Its word is a lock and how many there are. The lock is for some nanoseconds, and who
// meets it goes elsewhere: each of the commands says first whether it was carried out.
type queue struct {
	word        word // the length, shifted left by one, and locked
	first, last *core
	id          uint32 // what the owner of those in here is
}

func (q *queue) tryLock() (length uint32, ok bool) {
	w, ok := tryLock(&q.word)
	return w >> 1, ok
}

func (q *queue) unlock(length uint32) { q.word.Store(length << 1) }

// length is how many there are, or were a moment ago. A queue that somebody has locked may have any number.
func (q *queue) length() uint32 { return q.word.Load() >> 1 }

// empty tells whether there are none, and nobody is about to change that.
func (q *queue) empty() bool { return q.word.Load() == 0 }

// tryEnqueue puts c, which is queued and in no queue, at the end.
func (q *queue) tryEnqueue(c *core) (ok, wasEmpty bool) {
	n, ok := q.tryLock()
	if !ok {
		return false, false
	}
	q.append(c)
	q.unlock(n + 1)
	return true, n == 0
}

// tryDequeue takes the first out; nil if there is none.
func (q *queue) tryDequeue() (ok bool, c *core) {
	if q.empty() {
		return true, nil
	}
	n, ok := q.tryLock()
	if !ok {
		return false, nil
	}
	if c = q.first; c != nil {
		q.remove(c)
		n--
	}
	q.unlock(n)
	return true, c
}

// tryDequeueEntry takes c out, wherever in the queue it is. It reports false if c is not here, or the queue is locked.
func (q *queue) tryDequeueEntry(c *core) bool {
	n, ok := q.tryLock()
	if !ok {
		return false
	}
	here := c.owner.Load() == q.id
	if here {
		q.remove(c)
		n--
	}
	q.unlock(n)
	return here
}

// trySteal takes the first half of those that are here, at most most of them, as a list that only the thief can
// reach.
func (q *queue) trySteal(most int) (ok bool, list *core) {
	if q.empty() {
		return true, nil
	}
	n, ok := q.tryLock()
	if !ok {
		return false, nil
	}
	end := &list
	for range min(most, int(n+1)/2) {
		c := q.first
		q.remove(c)
		*end, end = c, &c.next
		n--
	}
	q.unlock(n)
	return true, list
}

// all returns those who are here. It waits for the lock.
func (q *queue) all() (all []*core) {
	w := lock(&q.word)
	for c := q.first; c != nil; c = c.next {
		all = append(all, c)
	}
	q.word.Store(w)
	return all
}

// takeAll is all, and takes them out.
func (q *queue) takeAll() (all []*core) {
	lock(&q.word)
	for c := q.first; c != nil; c = q.first {
		all = append(all, c)
		q.remove(c)
	}
	q.unlock(0)
	return all
}

func (q *queue) append(c *core) {
	if c.prev = q.last; q.last != nil {
		q.last.next = c
	} else {
		q.first = c
	}
	q.last = c
	c.owner.Store(q.id)
}

func (q *queue) remove(c *core) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.last = c.prev
	}
	c.prev, c.next = nil, nil
	c.owner.Store(0)
}
