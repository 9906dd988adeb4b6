package shutdown

import (
	"fmt"
	"strings"
	"time"
)

// Cut is the error of a shutdown that left something unfinished. It says what that was, and which request caused it, so
// that an operator sees what did not finish in time. Run and Close of package act return a *Cut; find it with
// errors.As.
type Cut struct {
	// Order is the latest shutdown request that made the policy stricter; nil if Close was called without any.
	Order Order
	// Tasks and Demons count the actions that had not finished; Offloads counts the tasks among them whose offloaded
	// function was running. Lingering counts work without a task, such as connections that send their last bytes.
	Tasks, Demons, Offloads, Lingering int
	// Processes counts the actors (package process) that had something to do. If the shutdown halts or suspends, it
	// counts all that were alive.
	Processes int
	// Dropped says that what was left has been closed and removed. If it is false, a later Run goes on with that.
	Dropped bool
	// Names counts the unfinished actions by their names (see act.Name), in order of appearance: the first 8 names.
	Names []Count
	// Kinds counts the same actions by their service, or else by their type or function: the first 8 of these.
	Kinds []Count
	// Left describes at most 16 of the tasks and connections that the shutdown waited for, the longest still first: one
	// of each kind before a second one of any kind. If the shutdown halts, they are described as they were when it
	// came. Services that end last of all are among them only if nothing else is left.
	Left []Unfinished
}

// Unfinished is something that a shutdown waits for, or has left unfinished: a task or demon, or a connection that is
// being closed and no longer has a task.
type Unfinished struct {
	Kind  string // the service of the task, such as "tcp 127.0.0.1:8080", or else the type or function of its action
	Name  string // the name of the action: see act.Name
	State string // what the task is doing: "ready", "waiting", "offloaded", "out of turns" or "closing"
	Peer  string // the address of the other end of the connection; "" if there is none, or if it is not known
	// Waits has what the task waits for, in a few words each, including timers.
	Waits []string
	// Still is for how long no byte has gone either way. For a task without a connection it is for how long its
	// offloaded function has run, or at least how long it has had no turn. Less than 0 means not known.
	Still time.Duration
}

// String returns all of l in one line for a log, without a newline at its end.
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

// Count is a name, and how many unfinished actions have it: see [Cut].
type Count struct {
	Name string // the name of the actions, or in Cut.Kinds their kind
	N    int    // how many actions have it
}

// String returns the name, preceded by the number if that is not 1, as in "3 × echo".
func (c Count) String() string {
	if c.N == 1 {
		return c.Name
	}
	return fmt.Sprintf("%d × %s", c.N, c.Name)
}

// Error returns one sentence: what was left or dropped, with counts and names, and by which request.
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
		fmt.Fprintf(&b, "; policy: %v", c.Order.Policy())
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

// text returns the text of o, or else its type.
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
