package inbox_test

import (
	"fmt"

	"github.com/daimon-go/daimon/internal/inbox"
)

// Work is handed over until the ring is closed; what got in is still done.
func ExampleRing() {
	r := inbox.NewRing[string](2)
	for _, job := range []string{"read", "write", "close"} {
		if !r.Push(job) {
			fmt.Println("no room for", job)
		}
	}
	r.Close()
	for job, ok := r.Pop(); ok; job, ok = r.Pop() {
		fmt.Println(job)
	}
	// Output:
	// no room for close
	// read
	// write
}

// Tasks are woken from elsewhere: each brings its own node.
func ExampleStack() {
	type task struct {
		name string
		node inbox.Node[*task]
	}
	var s inbox.Stack[*task]
	for _, name := range []string{"a", "b"} {
		t := &task{name: name}
		t.node.Of = t
		s.Push(&t.node)
	}
	for n := s.TakeAll(); n != nil; {
		next := n.Next() // before the task runs, and may be woken again
		fmt.Println("wake", n.Of.name)
		n = next
	}
	// Output:
	// wake a
	// wake b
}
