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

// progress prints a line for each task that has changed between two looks.
type progress struct {
	out      io.Writer
	over     stage.ID            // this task and all before it are finished or cancelled, which does not change
	said     map[stage.ID]string // what was printed last of each task after over
	outcomes map[stage.ID]outcome
}

// newProgress prints nothing about tasks that have no work left, until they change.
func newProgress(out io.Writer, tasks []stage.Task) *progress {
	p := &progress{out: out, said: map[stage.ID]string{}, outcomes: map[stage.ID]outcome{}}
	for _, t := range tasks {
		if outcomeOf(&t) != todo {
			p.said[t.ID] = Condition(&t)
		}
	}
	return p
}

// added prints that a task was added.
func (p *progress) added(id stage.ID, path string) {
	p.said[id] = Condition(&stage.Task{Stage: first, Status: stage.Normal})
	p.outcomes[id] = todo
	fmt.Fprintf(p.out, "%d %s: added\n", id, shown(path))
}

// look prints what has changed. tasks are those after p.over; look returns whether one of them has work left.
func (p *progress) look(tasks []stage.Task) (left bool) {
	all := true // all so far are over
	for _, t := range tasks {
		what := outcomeOf(&t)
		left = left || what == todo
		if now := Condition(&t); p.said[t.ID] != now {
			p.said[t.ID], p.outcomes[t.ID] = now, what
			fmt.Fprintf(p.out, "%d %s: %s\n", t.ID, shown(string(t.Data)), now)
		}
		if all = all && (what == finished || what == cancelled); all {
			p.over = t.ID
			delete(p.said, t.ID)
		}
	}
	return left
}

// summary counts the outcomes of the tasks that had work left.
func (p *progress) summary() string {
	counts := map[outcome]int{}
	for _, what := range p.outcomes {
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

func (p *progress) failures() (count int) {
	for _, what := range p.outcomes {
		if what == failed {
			count++
		}
	}
	return count
}

// outcome is the state of a task as the summary names it.
type outcome string

const (
	todo      outcome = "to go on with" // has work left
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

// Condition describes the state of a task in a line.
func Condition(t *stage.Task) string {
	if t.Stage == last {
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
		text += ": " + failure(t)
	}
	return text
}

// shown returns a path for people: relative if the file is below the working directory, and on one line.
func shown(path string) string {
	if here, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(short) {
			path = short
		}
	}
	return oneLine(path)
}

// failure is the failure of a task on one line, without the stack of a panic.
func failure(t *stage.Task) string {
	text, _, _ := strings.Cut(t.Failure, "\n\n")
	return oneLine(text)
}

// oneLine quotes a text that has line feeds or other characters that do not print.
func oneLine(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return strconv.Quote(text)
	}
	return text
}
