package inbox

import "sync/atomic"

// A Node is one entry of a Stack, meant to be a field of what is pushed and found again through Of: pushing allocates
// nothing. The zero Node is ready. A Node is in at most one Stack, once, from its Push until the consumer has called its
// Next. The caller of Push ensures that, usually with a flag that a compare-and-swap sets and the consumer clears.
type Node[T any] struct {
	next *Node[T] // in the stack: the one pushed before; taken: the one pushed after
	Of   T        // whose entry it is; the stack never looks at it
}

// Next takes n off the front of a chain that TakeAll or Close returned, and returns the rest: the node pushed after n, nil
// if n was the last. Call it once, before n can be pushed again. It leaves no link behind, so that a long-lived node does
// not keep alive what was once pushed after it.
func (n *Node[T]) Next() *Node[T] {
	next := n.next
	n.next = nil
	return next
}

// A Stack is an unbounded queue of nodes from any number of goroutines to a consumer that takes all at once, oldest first:
// R. K. Treiber's stack, turned over when taken. A push is one compare-and-swap, so it can be repeated while others push
// but never waits for them, also not for one that was interrupted. The zero Stack is empty and open. A Stack must not be
// copied.
type Stack[T any] struct {
	head atomic.Pointer[Node[T]] // the youngest; nil: empty; &end: closed
	end  Node[T]                 // only its address is used: the one no caller can have
}

// Push puts n on the stack. pushed is false once the stack is closed: n is then still the caller's. wasEmpty says that
// nothing was there before, so that of many callers only the first need wake the consumer. Any goroutine may call it.
func (s *Stack[T]) Push(n *Node[T]) (pushed, wasEmpty bool) {
	for {
		head := s.head.Load()
		if head == &s.end {
			n.next = nil // from a compare-and-swap that failed
			return false, false
		}
		n.next = head
		if s.head.CompareAndSwap(head, n) {
			// head may have been taken and pushed again since the load. That does no harm: it is the head again, and n is before it.
			return true, head == nil
		}
	}
}

// TakeAll empties the stack and returns what was there, the oldest, from which Next leads to the youngest; nil if there
// was nothing. Every Push that returned before TakeAll began is in it. Any goroutine may call it, each node goes to one of
// them; the order among pushes holds for a single consumer.
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

// Close makes every Push from now on report false and returns what was left, as TakeAll does: each node was either pushed
// before and is in the chain, or is refused. Any goroutine may call it; all but the first call return nil.
func (s *Stack[T]) Close() *Node[T] {
	head := s.head.Swap(&s.end)
	if head == &s.end {
		return nil
	}
	return turned(head)
}

// Empty reports whether nothing is there to be taken, so also once closed. Any goroutine may call it; as with Ring.Empty,
// a consumer may sleep on it.
func (s *Stack[T]) Empty() bool {
	head := s.head.Load()
	return head == nil || head == &s.end
}

// turned reverses a chain: youngest first to oldest first.
func turned[T any](youngest *Node[T]) *Node[T] {
	var after *Node[T]
	for n := youngest; n != nil; {
		n.next, n, after = after, n.next, n
	}
	return after
}
