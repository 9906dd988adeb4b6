// Package chain has a doubly linked list whose nodes are fields of what is in it: any of them can be taken out, and none
// is allocated.
package chain

// List is a list. The zero List is empty.
type List[T any] struct{ First, Last *Node[T] }

// Node is an element, which is in one list at most. Of is set by its owner.
type Node[T any] struct {
	Of   T
	Next *Node[T]
	prev *Node[T]
	in   *List[T]
}

// Append adds n at the end, unless it is in a list.
func (l *List[T]) Append(n *Node[T]) {
	if n.in != nil {
		return
	}
	n.in, n.prev, n.Next = l, l.Last, nil
	if l.Last == nil {
		l.First = n
	} else {
		l.Last.Next = n
	}
	l.Last = n
}

// Remove takes n out, and reports whether it was in a list.
func (n *Node[T]) Remove() bool {
	l := n.in
	if l == nil {
		return false
	}
	if n.prev == nil {
		l.First = n.Next
	} else {
		n.prev.Next = n.Next
	}
	if n.Next == nil {
		l.Last = n.prev
	} else {
		n.Next.prev = n.prev
	}
	n.in, n.prev, n.Next = nil, nil, nil
	return true
}

// TakeAll takes all nodes out, and returns the first. They stay linked by Next.
func (l *List[T]) TakeAll() (first *Node[T]) {
	first = l.First
	for n := first; n != nil; n = n.Next {
		n.in, n.prev = nil, nil
	}
	*l = List[T]{}
	return first
}
