package shutdown

import (
	"fmt"
	"strings"
)

// Named bounds how many of the things that were cut a Cut names.
const Named = 8

// Cut is the error of an end that left something undone. It says what and under which order, so
// that an operator sees who did not finish in time.
type Cut struct {
	// Order is the last order that made the terms stricter; nil when Close cut without one.
	Order Order
	// Tasks and Demons count the actions that were alive at the end; Offloads those of the tasks whose
	// offloaded work was still running; Lingering what was held for nobody's task any more, such as
	// connections still sending their last bytes.
	Tasks, Demons, Offloads, Lingering int
	// Dropped tells whether they are gone; otherwise a later Run goes on with them.
	Dropped bool
	// Names are the types of the actions, with a count where several are of one type, at most Named.
	Names []string
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
	}{{c.Demons, "demon"}, {c.Offloads, "running offload"}, {c.Lingering, "lingering close"}} {
		if more.n > 0 {
			fmt.Fprintf(&b, ", %s", plural(more.n, more.noun))
		}
	}
	if len(c.Names) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(c.Names, ", "))
	}
	if c.Order != nil {
		fmt.Fprintf(&b, " under %T: %v", c.Order, c.Order.Policy())
	}
	return b.String()
}

// Add joins what another scheduler of the same group cut.
func (c *Cut) Add(o *Cut) {
	c.Tasks += o.Tasks
	c.Demons += o.Demons
	c.Offloads += o.Offloads
	c.Lingering += o.Lingering
	c.Dropped = c.Dropped || o.Dropped
	if c.Order == nil {
		c.Order = o.Order
	}
	c.Names = append(c.Names, o.Names...)
	if len(c.Names) > Named {
		c.Names = c.Names[:Named]
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
