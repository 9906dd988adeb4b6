// Package remind has a service that is not a socket: it makes a task for each line of a text.
package remind

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// Text is the source of the tasks. It is used by one Group.
type Text struct {
	// In has a line for each task: a duration, and the text to print when it has passed. A line longer than 64 KiB
	// (bufio.MaxScanTokenSize) fails the service. A line that is not understood fails only its task.
	In  io.Reader
	Out io.Writer // gets the texts
}

// Setup is a set-up function that installs the service. On an order it reads no more lines; tasks that were made go on
// for as long as the order allows.
func (x *Text) Setup(s *act.Scheduler) error {
	s.Install(service.New(x.reminders()))
	return nil
}

// reminders returns the source of the service. Reading may block, so it is done off the thread, one line at a time.
func (x *Text) reminders() func(*act.Task) (act.Action, act.Directive) {
	lines, number := bufio.NewScanner(x.In), 0
	var read *act.Call[bool]
	return func(t *act.Task) (act.Action, act.Directive) {
		if read == nil {
			read = &act.Call[bool]{F: func() (bool, error) { return lines.Scan(), lines.Err() }}
		}
		switch d := read.Act(t); d {
		case act.Done:
		case act.Failed:
			return nil, t.Fail(fmt.Errorf("line %d: %w", number+1, t.Err()))
		default:
			return nil, d
		}
		more := read.Value
		read, number = nil, number+1
		if !more {
			return nil, act.Done
		}
		return reminder(lines.Text(), x.Out), act.Yield
	}
}

// reminder is the task for one line. It prints on the scheduler's thread, which has no other work; a server would not.
func reminder(line string, out io.Writer) act.Action {
	wait, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	d, err := time.ParseDuration(wait)
	if err != nil {
		return act.Func(func(t *act.Task) act.Directive { return t.Fail(fmt.Errorf("not understood: %q", line)) })
	}
	return act.Seq(&listener.Sleep{For: d}, say(out, text))
}

func say(out io.Writer, text string) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		if _, err := fmt.Fprintln(out, text); err != nil {
			return t.Fail(err)
		}
		return act.Done
	})
}
