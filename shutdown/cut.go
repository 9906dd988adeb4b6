package shutdown

import (
	"fmt"
	"strings"
	"time"
)

// Cut is the error of an end that left something undone. It says what, and under which order, so that an operator sees what
// did not finish in time.
type Cut struct {
	// Order is the last order that made the terms stricter; nil if Close was called without one.
	Order Order
	// Tasks and Demons count the actions that had not finished, and Offloads those of the tasks whose offloaded function was
	// running. Lingering counts what goes on without a task, such as connections that send their last bytes.
	Tasks, Demons, Offloads, Lingering int
	// Processes counts those of package process that had something to do. Under an order that halts or suspends it counts all that
	// were alive.
	Processes int
	// Dropped reports whether they were dropped; otherwise a later Run goes on with them.
	Dropped bool
	// Names are the different names of the actions, in order of appearance, at most 8.
	Names []Count
	// Kinds are the same actions by service, or else by type or function; at most 8.
	Kinds []Count
	// Left are at most 16 of those that the end has waited for, of each kind one before a second one of any. They say what they
	// were waiting for: under an order that halts, when it came. What is to end last of all is among them only if nothing else is
	// left.
	Left []Unfinished
}

// Unfinished is what an end waits for, or has cut: a task or demon, or a connection that is being closed and has no task any more.
type Unfinished struct {
	Kind  string // its service, such as "tcp 127.0.0.1:8080", or else the type or function of its action
	Name  string // of its action
	State string // ready, waiting, offloaded, out of turns, closing
	Peer  string // the other end of its connection; "" if there is none, or if it is not known
	// Waits is what it waits for, in a few words each; timers are among it.
	Waits []string
	// Still is for how long no byte has gone either way. Of a task without a connection it is for how long, at least, its
	// function has run elsewhere, or the task has had no turn. Less than 0 means that this is not known.
	Still time.Duration
}

// String is one line without an end.
func (l Unfinished) String() string {
	var b strings.Builder
	b.WriteString(l.Name)
	if l.Kind != l.Name && l.State != "closing" {
		fmt.Fprintf(&b, " of %s", l.Kind)
	}
	if l.Peer != "" {
		fmt.Fprintf(&b, ", peer %s", l.Peer)
	}
	if l.Still >= 0 {
		fmt.Fprintf(&b, ", still for %v", round(l.Still))
	}
	if len(l.Waits) > 0 {
		fmt.Fprintf(&b, ", waits for %s", strings.Join(l.Waits, ", "))
	} else {
		fmt.Fprintf(&b, ", %s", l.State)
	}
	return line(b.String())
}

// line returns text as one line: an action may have any name.
func line(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }

// round returns d with a precision that people read.
func round(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
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
	fmt.Fprintf(&b, "shutdown: %s %s", verb, c.counts())
	writeCounts(&b, c.Names)
	if c.Order != nil {
		if _, plain := c.Order.(Policy); !plain {
			fmt.Fprintf(&b, "; order: %s", text(c.Order))
		}
		fmt.Fprintf(&b, "; terms: %v", c.Order.Policy())
	}
	return b.String()
}

// counts is how many of each sort are left, and always says how many tasks.
func (c *Cut) counts() string {
	text := plural(c.Tasks, "task")
	for _, more := range []struct {
		n    int
		noun string
	}{{c.Demons, "demon"}, {c.Offloads, "running offload"}, {c.Lingering, "lingering close"}, {c.Processes, "process"}} {
		if more.n > 0 {
			text += ", " + plural(more.n, more.noun)
		}
	}
	return text
}

func writeCounts(b *strings.Builder, all []Count) {
	if len(all) == 0 {
		return
	}
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = n.String()
	}
	fmt.Fprintf(b, " (%s)", strings.Join(texts, ", "))
}

// text returns the text of an order, or else its type.
func text(o Order) string {
	switch o.(type) {
	case error, fmt.Stringer:
		return fmt.Sprint(o)
	}
	return fmt.Sprintf("%T", o)
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
