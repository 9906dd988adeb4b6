package process

// cores is a list of processes. The links are part of the process, so that one can be taken out of the middle, and adding
// one allocates nothing.
type cores struct{ first, last *core }

type links struct{ prev, next *core }

// The lists that a process can be in, as indexes of its links.
const (
	queueLinks = iota // a queue, or the processes that a thief has taken
	registryLinks
)

func (l *cores) append(c *core, kind int) {
	if c.links[kind].prev = l.last; l.last != nil {
		l.last.links[kind].next = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *cores) remove(c *core, kind int) {
	at := &c.links[kind]
	if at.prev != nil {
		at.prev.links[kind].next = at.next
	} else {
		l.first = at.next
	}
	if at.next != nil {
		at.next.links[kind].prev = at.prev
	} else {
		l.last = at.prev
	}
	*at = links{}
}

func (l *cores) all(kind int) (all []*core) {
	for c := l.first; c != nil; c = c.links[kind].next {
		all = append(all, c)
	}
	return all
}
