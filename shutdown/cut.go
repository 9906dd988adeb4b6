package shutdown

import (
	"fmt"
	"slices"
	"strings"
)

// maxNames bounds the different names in a Cut.
const maxNames = 8

// Cut is the error of an end that left something undone. It says what, and under which order, so that an operator sees what
// did not finish in time.
type Cut struct {
	// Order is the last order that made the terms stricter; nil if Close was called without one.
	Order Order
	// Tasks and Demons count the actions that had not finished; Offloads those of the tasks whose offloaded function was
	// running; Lingering what goes on without a task, such as connections that send their last bytes.
	Tasks, Demons, Offloads, Lingering int
	// Processes counts those of package process: under an order that halts or suspends all that were alive, otherwise
	// those that had something to do.
	Processes int
	// Dropped reports whether they were dropped; otherwise a later Run goes on with them.
	Dropped bool
	// Names are the different names of the actions, in order of appearance, at most 8.
	Names []Count
}

// Count is how many actions of one name were cut.
type Count struct {
	Name string
	N    int
}

func (c Count) String() string {
	if c.N == 1 {
		return c.Name
	}
	return fmt.Sprintf("%d × %s", c.N, c.Name)
}

// Error is one sentence.
func (c *Cut) Error() string {
	var b strings.Builder
	verb := "left"
	if c.Dropped {
		verb = "dropped"
	}
	fmt.Fprintf(&b, "shutdown: %s %s", verb, plural(c.Tasks, "task"))
	for _, more := range []struct {
		n    int
		noun string
	}{{c.Demons, "demon"}, {c.Offloads, "running offload"}, {c.Lingering, "lingering close"}, {c.Processes, "process"}} {
		if more.n > 0 {
			fmt.Fprintf(&b, ", %s", plural(more.n, more.noun))
		}
	}
	if len(c.Names) > 0 {
		names := make([]string, len(c.Names))
		for i, n := range c.Names {
			names[i] = n.String()
		}
		fmt.Fprintf(&b, " (%s)", strings.Join(names, ", "))
	}
	if c.Order != nil {
		fmt.Fprintf(&b, "; order: %s; terms: %v", text(c.Order), c.Order.Policy())
	}
	return b.String()
}

// text returns the text of an order, or else its type.
func text(o Order) string {
	switch o.(type) {
	case error, fmt.Stringer:
		return fmt.Sprint(o)
	}
	return fmt.Sprintf("%T", o)
}

// Add adds what o counts and names. Of the orders, c keeps its own if it has one.
func (c *Cut) Add(o *Cut) {
	c.Tasks += o.Tasks
	c.Demons += o.Demons
	c.Offloads += o.Offloads
	c.Lingering += o.Lingering
	c.Processes += o.Processes
	c.Dropped = c.Dropped || o.Dropped
	if c.Order == nil {
		c.Order = o.Order
	}
	for _, n := range o.Names {
		i := slices.IndexFunc(c.Names, func(known Count) bool { return known.Name == n.Name })
		switch {
		case i >= 0:
			c.Names[i].N += n.N
		case len(c.Names) < maxNames:
			c.Names = append(c.Names, n)
		}
	}
}

func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
