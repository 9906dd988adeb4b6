package process

// queue holds the queued processes of one runner. It is a list, so that a process can be taken out of the middle, and it
// has no bound. A thread that finds it locked goes elsewhere: each try method reports whether it was carried out.
type queue struct {
	word word // the length, shifted left by one, and locked
	cores
	id uint32 // the owner of its processes
}

func (q *queue) tryLock() (length uint32, ok bool) {
	w, ok := tryLock(&q.word)
	return w >> 1, ok
}

func (q *queue) unlock(length uint32) { q.word.Store(length << 1) }

// length returns how many processes there are, or were a moment ago. While the queue is locked it may be any number.
func (q *queue) length() uint32 { return q.word.Load() >> 1 }

// empty reports whether there are no processes, and no thread is about to change that.
func (q *queue) empty() bool { return q.word.Load() == 0 }

// tryEnqueue adds c, which is queued and in no queue, at the end.
func (q *queue) tryEnqueue(c *core) bool {
	n, ok := q.tryLock()
	if !ok {
		return false
	}
	q.append(c, queueLinks)
	c.owner.Store(q.id)
	q.unlock(n + 1)
	return true
}

// tryDequeue takes the first process out. c is nil if there is none.
func (q *queue) tryDequeue() (ok bool, c *core) {
	if q.empty() {
		return true, nil
	}
	n, ok := q.tryLock()
	if !ok {
		return false, nil
	}
	if c = q.first; c != nil {
		q.take(c)
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
		q.take(c)
		n--
	}
	q.unlock(n)
	return here
}

// trySteal takes the first half of the processes, at most most of them.
func (q *queue) trySteal(most int) (ok bool, stolen cores) {
	if q.empty() {
		return true, stolen
	}
	n, ok := q.tryLock()
	if !ok {
		return false, stolen
	}
	for range min(most, int(n+1)/2) {
		c := q.first
		q.take(c)
		stolen.append(c, queueLinks)
		n--
	}
	q.unlock(n)
	return true, stolen
}

// processes returns all processes. It waits for the lock.
func (q *queue) processes() []*core {
	w := lock(&q.word)
	all := q.all(queueLinks)
	q.word.Store(w)
	return all
}

// takeAll returns all processes, and takes them out. It waits for the lock.
func (q *queue) takeAll() []*core {
	lock(&q.word)
	all := q.all(queueLinks)
	for _, c := range all {
		q.take(c)
	}
	q.unlock(0)
	return all
}

// take takes c out. Under the lock.
func (q *queue) take(c *core) {
	q.remove(c, queueLinks)
	c.owner.Store(0)
}
