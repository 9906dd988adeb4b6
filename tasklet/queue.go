package tasklet

// queue is a FIFO of entries. Any of them may be removed. The zero queue is empty.
type queue struct{ head, tail *entry }

func (q *queue) push(e *entry) {
	if e.prev = q.tail; e.prev == nil {
		q.head = e
	} else {
		e.prev.next = e
	}
	q.tail = e
}

func (q *queue) remove(e *entry) {
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}
