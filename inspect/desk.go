package inspect

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/shutdown"
)

// slice bounds a turn of a desk: a scheduler must not be held up by questions about it.
const slice = time.Millisecond

// desk is the demon that answers questions about its scheduler, between two turns of others, on its thread.
type desk struct {
	probe   *probe
	waker   act.AtomicWaker
	pending atomic.Pointer[question]

	// The question that is being answered, nil if none.
	question *question
	report   *Scheduler
	place    uint32        // of the next task; 0 after the last
	lists    []hook.Lister // that were met and are not finished
	again    bool          // the first of them has not begun
}

// question is what a desk is asked.
type question struct {
	tasks  bool // and processes, one by one
	room   []Task
	answer chan *Scheduler
}

// ask returns a question that the desk answers once: a new one, or the one that it has not answered yet. It makes room for as
// many tasks as expected here: to grow a list of very many, and to copy it, would hold up the scheduler. Any goroutine.
func (d *desk) ask(tasks bool, expected int) *question {
	q := &question{tasks: tasks, answer: make(chan *Scheduler, 1)}
	if tasks {
		q.room = make([]Task, 0, expected+expected/8)
	}
	for !d.pending.CompareAndSwap(nil, q) {
		if old := d.pending.Load(); old != nil {
			return old
		}
	}
	d.waker.Wake()
	return q
}

// Act answers a question for a slice of time.
func (d *desk) Act(t *act.Task) act.Directive {
	if d.question == nil {
		d.waker.Set(t.Waker())
		if d.question = d.pending.Load(); d.question == nil {
			return act.Wait
		}
		d.begin()
	}
	for until := d.probe.clock() + slice; d.work(); {
		if d.probe.clock() >= until {
			return act.Yield
		}
	}
	q, report := d.question, d.report
	d.question, d.report = nil, nil
	d.pending.Store(nil)
	q.answer <- report
	return act.Yield // another question may have come
}

func (d *desk) begin() {
	d.report = d.probe.report()
	d.report.Tasks = d.question.room
	d.place, d.lists = 1, nil
	hook.Counts(d.probe.s, d.add)
	hook.EachLocal(d.probe.s, func(v any) {
		if c, ok := v.(hook.Counter); ok {
			c.Counts(d.add)
		}
		d.meet(v)
	})
}

func (d *desk) add(name string, n uint64) { d.report.Counts[name] += n }

// meet remembers v if there is a list to ask it for.
func (d *desk) meet(v any) {
	if l, ok := v.(hook.Lister); ok {
		d.lists, d.again = append(d.lists, l), d.again || len(d.lists) == 0
	}
}

// rows is how many rows are visited between two readings of the clock.
const rows = 16

// work visits a few tasks, or a few rows of a list, and reports whether there are more.
func (d *desk) work() bool {
	left := rows
	if d.place != 0 {
		d.place = hook.EachTask(d.probe.s, d.place, func(t hook.Task) bool {
			if t.Demon {
				d.meet(t.Action)
			}
			if d.question.tasks {
				d.report.Tasks = append(d.report.Tasks, d.probe.describe(t))
			}
			left--
			return left > 0
		})
		return true
	}
	if len(d.lists) == 0 {
		return false
	}
	more := d.lists[0].List(d.again, func(v any) bool {
		switch v := v.(type) {
		case *hook.Service:
			d.report.Services = append(d.report.Services, *v)
		case *hook.Stages:
			d.report.Stages = append(d.report.Stages, *v)
		case *hook.Process:
			if !d.question.tasks {
				return false
			}
			d.report.Processes = append(d.report.Processes, *v)
		}
		left--
		return left > 0
	})
	if d.again = false; !more || left > 0 {
		d.lists, d.again = d.lists[1:], true
	}
	return true
}

// describe returns what is known of a task.
func (p *probe) describe(t hook.Task) Task {
	r := p.row(t.Task.(*act.Task))
	now := p.millis()
	d := Task{
		ID: t.ID, Scheduler: p.index, Kind: r.kind.name, State: t.State, Demon: t.Demon,
		Age: time.Duration(now-r.born) * time.Millisecond, Since: time.Duration(now-r.last) * time.Millisecond,
	}
	if t.State == "offloaded" || t.State == "abandoned" { // the action belongs to its function
		d.Name, d.Waits = d.Kind, []string{"a function that runs elsewhere"}
		return d
	}
	d.Name = act.Name(t.Action)
	if x, ok := t.Action.(hook.Connected); ok {
		if c, open := x.Connection(); open {
			d.Peer, d.Unread, d.Queued, d.Still = c.Peer, c.Unread, c.Queued, c.Still
		}
	}
	if t.State == "ready" {
		return d
	}
	hook.AskWaits(t.Action, func(what string) { d.Waits = append(d.Waits, what) })
	if t.Timers > 0 {
		d.Waits = append(d.Waits, fmt.Sprintf("a timer due in %v", t.Due.Round(time.Millisecond)))
	}
	return d
}

// Stop is ignored: questions about the end are answered as well.
func (d *desk) Stop(*act.Task, shutdown.Order) {}

func (d *desk) String() string { return "inspect" }
