package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/daimon-go/daimon/stage"
)

// news says what has changed about tasks, a line for each change. What lies between two looks is not seen.
type news struct {
	out      io.Writer
	over     stage.ID            // it and all before are finished or cancelled: nothing changes them any more
	said     map[stage.ID]string // of those behind over
	outcomes map[stage.ID]outcome
}

// newNews takes it as known how matters stand with the tasks that nobody works on, and is going to.
func newNews(out io.Writer, tasks []stage.Task) *news {
	n := &news{out: out, said: map[stage.ID]string{}, outcomes: map[stage.ID]outcome{}}
	for _, t := range tasks {
		if outcomeOf(&t) != todo {
			n.said[t.ID] = Condition(&t)
		}
	}
	return n
}

// added says that a task is there.
func (n *news) added(id stage.ID, path string) {
	n.said[id] = Condition(&stage.Task{Stage: chain.First().Name, Status: stage.Normal})
	n.outcomes[id] = todo
	fmt.Fprintf(n.out, "%d %s: added\n", id, shown(path))
}

// look takes the tasks behind n.over as they are now, and returns whether something is left to be done about them.
func (n *news) look(tasks []stage.Task) (left bool) {
	all := true // up to here
	for _, t := range tasks {
		what := outcomeOf(&t)
		left = left || what == todo
		if now := Condition(&t); n.said[t.ID] != now {
			n.said[t.ID], n.outcomes[t.ID] = now, what
			fmt.Fprintf(n.out, "%d %s: %s\n", t.ID, shown(string(t.Data)), now)
		}
		if all = all && (what == finished || what == cancelled); all {
			n.over = t.ID
			delete(n.said, t.ID)
		}
	}
	return left
}

// summary counts what has become of the tasks that there was something to do about.
func (n *news) summary() string {
	counts := map[outcome]int{}
	for _, what := range n.outcomes {
		counts[what]++
	}
	var parts []string
	for _, what := range []outcome{finished, failed, suspended, cancelled, todo} {
		if counts[what] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[what], what))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}

func (n *news) failures() (count int) {
	for _, what := range n.outcomes {
		if what == failed {
			count++
		}
	}
	return count
}

// outcome is what has become of a task.
type outcome string

const (
	todo      outcome = "to go on with" // somebody works on it, or is to
	finished  outcome = "finished"
	failed    outcome = "failed"
	suspended outcome = "suspended"
	cancelled outcome = "cancelled"
)

func outcomeOf(t *stage.Task) outcome {
	switch {
	case t.Runs():
		return todo
	case t.Finished():
		return finished
	case t.Status == stage.Error:
		return failed
	case t.Status == stage.Suspended:
		return suspended
	}
	return cancelled
}

// Condition is how matters stand with a task.
func Condition(t *stage.Task) string {
	if t.Stage == chain.Last().Name {
		return t.Stage
	}
	text := t.Stage + ", " + string(t.Status)
	if t.Wanted != stage.Nothing {
		text += ", " + string(t.Wanted) + " wanted"
	}
	if t.Attempt > 0 {
		text += fmt.Sprintf(", failures: %d", t.Attempt)
	}
	if t.Status == stage.Error {
		text += ": " + oneLine(t.Failure)
	}
	return text
}

// shown is a path for people: as short as it can be, and on one line.
func shown(path string) string {
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
			path = short
		}
	}
	return oneLine(path)
}

// oneLine keeps a text from looking like more than it is.
func oneLine(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return strconv.Quote(text)
	}
	return text
}
