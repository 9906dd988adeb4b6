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
	until    time.Duration // the end of the present slice
	place    uint32        // of the next task; 0 after the last
	lists    []hook.Lister // that were met and are not finished
	again    bool          // the first of them has not begun

	task  *Task        // that is being described
	waits func(string) // adds to its Waits
}

func newDesk(p *probe) *desk {
	d := &desk{probe: p}
	d.waits = func(what string) { d.task.Waits = append(d.task.Waits, what) }
	return d
}

// question is what a desk is asked.
type question struct {
	tasks  bool // and processes, one by one
	room   []Task
	more   [][]Task // those for which there was no room
	answer chan *Scheduler
}

// piece is how many tasks are in one of question.more. The scheduler allocates it, and a large allocation may have to help the
// collector for long.
const piece = 128

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
	for d.until = d.probe.clock() + slice; d.work(); {
		if d.late() {
			return act.Yield
		}
	}
	q, report := d.question, d.report
	d.question, d.report, d.task = nil, nil, nil
	d.pending.Store(nil)
	q.answer <- report
	return act.Yield // another question may have come
}

func (d *desk) begin() {
	d.report = d.probe.report()
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

// unasked is how many tasks are passed between two readings of the clock if nothing of them is asked.
const unasked = 16

// late reports whether the slice is over. The clock is read for each task and each row: to describe one allocates memory, and
// an allocation may have to help the collector.
func (d *desk) late() bool { return d.probe.clock() >= d.until }

// next returns the place of a further task in the answer.
func (d *desk) next() *Task {
	q := d.question
	list := &q.room
	if len(q.room) == cap(q.room) {
		if n := len(q.more); n == 0 || len(q.more[n-1]) == piece {
			q.more = append(q.more, make([]Task, 0, piece))
		}
		list = &q.more[len(q.more)-1]
	}
	*list = (*list)[:len(*list)+1]
	return &(*list)[len(*list)-1]
}

// work visits tasks, or the rows of a list, until the slice is over, and reports whether there may be more.
func (d *desk) work() bool {
	if d.place != 0 {
		d.place = hook.EachTask(d.probe.s, d.place, func(t hook.Task) bool {
			if t.Demon {
				d.meet(t.Action)
			}
			if d.question.tasks {
				d.task = d.next()
				d.describe(t)
			}
			return !d.question.tasks && t.ID%unasked != 0 || !d.late()
		})
		return true
	}
	if len(d.lists) == 0 {
		return false
	}
	refused := false
	more := d.lists[0].List(d.again, func(v any) bool {
		switch v := v.(type) {
		case *hook.Service:
			d.report.Services = append(d.report.Services, *v)
		case *hook.Stages:
			d.report.Stages = append(d.report.Stages, *v)
		case *hook.Process:
			if !d.question.tasks {
				return false // the list is over: there are no other rows
			}
			d.report.Processes = append(d.report.Processes, *v)
		}
		refused = d.late()
		return !refused
	})
	if d.again = false; !more || !refused {
		d.lists, d.again = d.lists[1:], true
	}
	return true
}

// describe writes what is known of a task into d.task.
func (d *desk) describe(t hook.Task) {
	p, to := d.probe, d.task
	r := p.row(t.Task.(*act.Task))
	now := p.millis()
	*to = Task{
		ID: t.ID, Scheduler: p.index, Kind: r.kind.name, State: t.State, Demon: t.Demon, Told: t.Told,
		Age: time.Duration(now-r.born) * time.Millisecond, Since: time.Duration(now-r.last) * time.Millisecond,
		born: r.born, last: r.last, turns: t.Turns,
	}
	if t.State == "offloaded" || t.State == "abandoned" { // the action belongs to its function
		to.Name, to.Waits = to.Kind, []string{"a function that runs elsewhere"}
		return
	}
	to.Name = name(t.Action)
	if x, ok := t.Action.(hook.Connected); ok {
		if c, open := x.Connection(); open {
			to.Peer, to.Unread, to.Queued, to.Still, to.Stuck = c.Peer, c.Unread, c.Queued, c.Still, c.Stuck
		}
	}
	if t.State == "ready" {
		return
	}
	hook.AskWaits(t.Action, d.waits)
	if t.Timers > 0 {
		d.waits(fmt.Sprintf("a timer due in %v", t.Due.Round(time.Millisecond)))
	}
}

// name is act.Name without what clients have sent: the page shows nothing of anybody's data.
func name(a any) string {
	if name, ok := hook.Redacted(a); ok {
		return name
	}
	return act.Name(a)
}

// Stop is ignored: questions about the end are answered as well.
func (d *desk) Stop(*act.Task, shutdown.Order) {}

func (d *desk) String() string { return "inspect" }
