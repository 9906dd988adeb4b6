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

// Setup returns a set-up function that installs the service. Each line of in is a duration and what to say
// on out when it has passed. On an order no more lines are read; what is to be said is said if there is time.
func Setup(in io.Reader, out io.Writer) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		s.Install(service.New(reminders(in, out)))
		return nil
	}
}

// reminders is a source. Reading blocks, so it is done off the thread, a line at a time: the next is read
// when the task of the last was made.
func reminders(in io.Reader, out io.Writer) func(*act.Task) (act.Action, act.Directive) {
	lines := bufio.NewScanner(in)
	var read *act.Call[bool]
	return func(t *act.Task) (act.Action, act.Directive) {
		if read == nil {
			read = &act.Call[bool]{F: func() (bool, error) { return lines.Scan(), lines.Err() }}
		}
		if d := read.Act(t); d != act.Done {
			return nil, d
		}
		more := read.Value
		read = nil
		if !more {
			return nil, act.Done
		}
		return reminder(lines.Text(), out), act.Yield
	}
}

// reminder is the task of one line. It writes on the scheduler's thread, which has nothing better to do;
// a server would not.
func reminder(line string, out io.Writer) act.Action {
	wait, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	d, err := time.ParseDuration(wait)
	if err != nil {
		return say(out, fmt.Sprintf("not understood: %q", line))
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
