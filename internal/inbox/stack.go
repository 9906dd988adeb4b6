package inbox

import "sync/atomic"

// A Node is one entry of a Stack, meant to be a field of the pushed object, which Of leads back to. The zero Node is ready. The
// caller of Push ensures that it is in at most one Stack, once, until the consumer has called its Next.
type Node[T any] struct {
	next *Node[T] // in the stack: the one pushed before; taken: the one pushed after
	Of   T        // whose entry it is; the stack never looks at it
}

// Next takes n off the front of a chain that TakeAll or Close returned, and returns the rest, nil if n was the last. It clears
// the link, so that a long-lived node keeps no other one alive.
func (n *Node[T]) Next() *Node[T] {
	next := n.next
	n.next = nil
	return next
}

// A Stack is an unbounded queue of nodes, from any number of goroutines to a consumer that takes all at once, the oldest
// first: R. K. Treiber's stack, reversed when taken. The zero Stack is empty and open. A Stack must not be copied.
type Stack[T any] struct {
	head atomic.Pointer[Node[T]] // the youngest; nil: empty; &end: closed
	end  Node[T]                 // only its address is used
}

// Push puts n on the stack. It returns false, and does nothing, once the stack is closed. Any goroutine.
func (s *Stack[T]) Push(n *Node[T]) bool {
	for {
		head := s.head.Load()
		if head == &s.end {
			n.next = nil // from a compare-and-swap that failed
			return false
		}
		n.next = head
		if s.head.CompareAndSwap(head, n) {
			// If head was taken and pushed again since the load, it is the head again, and n is before it.
			return true
		}
	}
}

// TakeAll empties the stack and returns the oldest node, from which Next leads to the youngest; nil if there was none. If
// several goroutines call it, each node goes to one of them, and the order does not hold.
func (s *Stack[T]) TakeAll() *Node[T] {
	for { // a swap would be simpler but could take the mark of a closed stack away
		head := s.head.Load()
		if head == nil || head == &s.end {
			return nil
		}
		if s.head.CompareAndSwap(head, nil) {
			return turned(head)
		}
	}
}

// Close makes every later Push return false, and returns the remaining entries, as TakeAll does; a second Close returns
// nil. Any goroutine.
func (s *Stack[T]) Close() *Node[T] {
	head := s.head.Swap(&s.end)
	if head == &s.end {
		return nil
	}
	return turned(head)
}

// Empty reports whether there is nothing to be taken, as once closed. A consumer may sleep on it as on Ring.Empty. Any
// goroutine.
func (s *Stack[T]) Empty() bool {
	head := s.head.Load()
	return head == nil || head == &s.end
}

// turned reverses a chain.
func turned[T any](youngest *Node[T]) *Node[T] {
	var after *Node[T]
	for n := youngest; n != nil; {
		n.next, n, after = after, n.next, n
	}
	return after
}
