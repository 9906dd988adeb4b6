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

// list is a list of entries that can be taken out of the middle.
type list[T any] struct{ first, last *entry[T] }

type entry[T any] struct {
	of         T
	listed     bool
	prev, next *entry[T]
}

func (l *list[T]) append(x *entry[T]) {
	x.listed = true
	if x.prev = l.last; l.last != nil {
		l.last.next = x
	} else {
		l.first = x
	}
	l.last = x
}

// remove takes x out, and reports whether it was listed.
func (l *list[T]) remove(x *entry[T]) bool {
	if !x.listed {
		return false
	}
	if x.prev != nil {
		x.prev.next = x.next
	} else {
		l.first = x.next
	}
	if x.next != nil {
		x.next.prev = x.prev
	} else {
		l.last = x.prev
	}
	x.listed, x.prev, x.next = false, nil, nil
	return true
}

// takeAll takes all entries out, and returns the first, which is still linked to the others.
func (l *list[T]) takeAll() (first *entry[T]) {
	first = l.first
	for x := first; x != nil; x = x.next {
		x.listed = false
	}
	*l = list[T]{}
	return first
}
