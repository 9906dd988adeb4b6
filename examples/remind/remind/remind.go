// Package remind is a service that is not a socket: it makes a task of each line of a text.
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

// Text is what the tasks are made of. It is for one Group.
type Text struct {
	// In has a line for each task: a duration, and what to say when it has passed. A line is at most 64 KiB
	// long (bufio.MaxScanTokenSize): a longer one fails the service. One that is not understood fails its
	// task alone.
	In  io.Reader
	Out io.Writer
}

// Setup is a set-up function that installs the service. On an order no more lines are read; what is to be
// said is said if there is time.
func (x *Text) Setup(s *act.Scheduler) error {
	s.Install(service.New(x.reminders()))
	return nil
}

// reminders is a source. Reading blocks, so it is done off the thread, a line at a time: the next is read
// when the task of the last was made.
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

// reminder is the task of one line. It writes on the scheduler's thread, which has nothing better to do;
// a server would not.
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
