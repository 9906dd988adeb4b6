package pace

import (
	"fmt"
	"io"

	"github.com/daimon-go/daimon/act"
)

// Talk returns a set-up function that makes tasks, each of which prints a number of lines at the pace of the monitor. They
// print on the scheduler's thread, which has no other work; a server would not.
func Talk(out io.Writer, tasks, each int) func(*act.Scheduler) error {
	return func(s *act.Scheduler) error {
		for i := range tasks {
			s.Spawn(&talker{out: out, number: i + 1, times: each})
		}
		return nil
	}
}

type talker struct {
	out           io.Writer
	number, times int
	said          int
	slot          Slot
}

func (x *talker) Act(t *act.Task) act.Directive {
	if x.said == x.times {
		return act.Done
	}
	if d := x.slot.Act(t); d != act.Done {
		return d
	}
	x.slot = Slot{}
	x.said++
	if _, err := fmt.Fprintf(x.out, "task %d, time %d\n", x.number, x.said); err != nil {
		return t.Fail(err)
	}
	return act.Yield
}

// Close gives up the place in the queue.
func (x *talker) Close() error { return x.slot.Close() }
