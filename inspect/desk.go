package inspect

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/shutdown"
)

// slice bounds a turn of a desk: a scheduler must not be held up by questions about it. The promise is a millisecond.
const slice = time.Millisecond / 2

// desk is the demon that answers questions about its scheduler, between two turns of others, on its thread. It writes
// values into memory that was allocated for the question: a scheduler that allocates may have to help the collector, or
// wait for it, for several milliseconds. Texts are made of them on the goroutine that has asked.
type desk struct {
	probe   *probe
	waker   act.AtomicWaker
	pending atomic.Pointer[question]
	latest  atomic.Pointer[question] // that was answered

	// The question that is being answered, nil if none.
	question *question
	until    time.Duration  // the end of the present slice
	place    uint32         // of the next task; 0 after the last
	lists    []facts.Lister // that were met, and are not finished from next on
	next     int
	again    bool            // that one has not begun
	refused  bool            // a row was the last of its slice
	said     act.Description // of the task that is described, used again

	// The methods as functions: to make one of them is an allocation.
	count   func(name string, n uint64)
	visit   func(*act.Task) bool
	visited func(row any) bool
	local   func(v any)
}

func newDesk(p *probe) *desk {
	d := &desk{probe: p}
	d.latest.Store(&question{at: p.clock(), report: &scheduler{Index: p.index}}) // nothing is known yet
	d.count, d.visit, d.visited, d.local = d.add, d.visitTask, d.visitRow, d.meet
	return d
}

// question is what a desk is asked.
type question struct {
	tasks  bool          // and processes, one by one
	answer chan struct{} // closed when all is written

	lists [2]int // how many waits and processes there were when a question with tasks was answered last

	// What the desk writes.
	at        time.Duration // when all was written, on the clock of the Group
	report    *scheduler    // without tasks and processes, until scheduler is called
	views     facts.Pile[view]
	waits     *facts.Waits
	processes facts.Pile[facts.Process]
}

// view is a task as a desk has seen it.
type view struct {
	task // without its texts: Peer and Waits
	peer facts.Address
	due  time.Duration // of its first timer; less than 0: it has none
	wait int           // its Waits are the Waits of the question, from the view before up to here
}

// ask returns a question that the desk answers: a new one, or the one that it has not answered yet. The new one has room for
// what the latest answer had, and a little more. Any goroutine.
func (d *desk) ask(tasks bool) *question {
	before := d.latest.Load()
	counts, room := before.report.Counts, func(n int) int { return n + n/8 + 64 }
	q := &question{tasks: tasks, answer: make(chan struct{}), lists: before.lists, waits: facts.MakeWaits(0), report: &scheduler{
		Counts: make(map[string]uint64, room(len(counts))), Kinds: make([]kindRow, 0, room(len(before.report.Kinds))),
	}}
	if tasks {
		n := int(counts["tasks"] + counts["demons"])
		q.views = facts.MakePile[view](room(n))
		q.waits = facts.MakeWaits(room(max(2*n, q.lists[0]))) // for its action, and for its connection
		q.processes = facts.MakePile[facts.Process](room(q.lists[1]))
	}
	for !d.pending.CompareAndSwap(nil, q) {
		if old := d.pending.Load(); old != nil {
			return old
		}
	}
	d.waker.Wake()
	return q
}

// scheduler returns the answer, with the texts of the tasks, once the desk has written all of it. One goroutine at a time.
func (q *question) scheduler() *scheduler {
	s := q.report
	slices.SortFunc(s.Kinds, func(a, b kindRow) int { return strings.Compare(a.Name, b.Name) })
	if q.tasks && s.tasks == nil {
		s.tasks, s.processes, q.lists = q.texts(), q.processes.Joined(), [2]int{q.waits.Len(), q.processes.Len()}
		q.views, q.waits, q.processes = facts.Pile[view]{}, nil, facts.Pile[facts.Process]{}
	}
	return s
}

func (q *question) texts() []task {
	tasks := make([]task, q.views.Len())
	from := 0
	for i := range tasks {
		v, t := q.views.At(i), &tasks[i]
		*t = v.task
		t.Peer, t.Waits = v.peer.String(), q.waits.Texts(from, v.wait)
		if v.due >= 0 {
			t.Waits = append(t.Waits, fmt.Sprintf("a timer due in %v", v.due.Round(time.Millisecond)))
		}
		from = v.wait
	}
	return tasks
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
	q := d.question
	d.question = nil
	q.at = d.probe.clock()
	d.latest.Store(q)
	d.pending.Store(nil)
	close(q.answer)
	return act.Yield // another question may have come
}

func (d *desk) begin() {
	clear(d.lists)
	d.place, d.lists, d.next, d.again = 1, d.lists[:0], 0, true
	d.probe.reportTo(d.question.report)
	d.probe.s.Internals().Counts(d.count)
	d.probe.s.Internals().EachLocal(d.local)
}

func (d *desk) add(name string, n uint64) { d.question.report.Counts[name] += n }

// meet remembers v if there is a list to ask it for.
func (d *desk) meet(v any) {
	if l, ok := v.(facts.Lister); ok {
		d.lists = append(d.lists, l)
	}
}

// unasked is how many tasks are passed between two readings of the clock if nothing of them is asked.
const unasked = 16

// late reports whether the slice is over. The clock is read for each task and each row: an action may take long to say what it
// waits for.
func (d *desk) late() bool { return d.probe.clock() >= d.until }

// work visits tasks, or the rows of a list, until the slice is over, and reports whether there may be more.
func (d *desk) work() bool {
	if d.place != 0 {
		d.place = d.probe.s.Internals().EachTask(d.place, d.visit)
		return true
	}
	if d.next == len(d.lists) {
		return false
	}
	d.refused = false
	more := d.lists[d.next].List(d.again, d.visited)
	if d.again = false; !more || !d.refused {
		d.next, d.again = d.next+1, true
	}
	return true
}

func (d *desk) visitTask(t *act.Task) bool {
	if t.Demon() {
		d.meet(t.Action())
	}
	if d.question.tasks {
		d.describe(t)
	}
	return !d.question.tasks && d.probe.s.Internals().Place(t)%unasked != 0 || !d.late()
}

func (d *desk) visitRow(row any) bool {
	q := d.question
	switch row := row.(type) {
	case *facts.Service:
		q.report.Services = append(q.report.Services, *row)
	case *facts.Packets:
		q.report.Packets = append(q.report.Packets, *row)
	case *facts.Stages:
		q.report.Stages = append(q.report.Stages, *row)
	case *facts.Route:
		q.report.Routes = append(q.report.Routes, *row)
	case *facts.Backend:
		q.report.Backends = append(q.report.Backends, *row)
	case *facts.Process:
		if !q.tasks {
			return false // the list is over: there are no other rows
		}
		*q.processes.Next() = *row
	}
	d.refused = d.late()
	return !d.refused
}

// describe writes the row of a task.
func (d *desk) describe(t *act.Task) {
	p, q := d.probe, d.question
	v := q.views.Next()
	id, is := p.s.Internals().Place(t), p.s.Internals().Status(t)
	r := p.rowAt(t, id)
	now := p.millis()
	v.task = task{
		ID: id, Scheduler: p.index, Kind: r.kind.Name, State: is.State, Demon: t.Demon(), Told: is.Told,
		Age: time.Duration(now-r.born) * time.Millisecond, Since: time.Duration(now-r.last) * time.Millisecond,
		born: r.born, turns: is.Turns,
	}
	v.due = -1
	if is.State == "offloaded" || is.State == "abandoned" { // the action belongs to its function
		v.Name = v.Kind
		q.waits.Add("a function that runs elsewhere")
		v.wait = q.waits.Len()
		return
	}
	said, first := d.said.Internals(), q.waits.Len()
	d.said.Name = ""
	said.Reset(q.waits)
	if x, ok := t.Action().(act.Describer); ok {
		x.Describe(&d.said)
	}
	if v.Name = d.said.Name; v.Name == "" {
		v.Name = act.Name(t.Action())
	}
	v.peer, v.Unread, v.Queued, v.Still, v.Stuck = said.Peer, said.Unread, said.Queued, said.Still, said.Stuck
	if is.State == "ready" {
		q.waits.Truncate(first)
	} else if is.Timers > 0 {
		v.due = is.Due
	}
	v.wait = q.waits.Len()
}

// Stop is ignored: questions about the end are answered as well.
func (d *desk) Stop(*act.Task, shutdown.Order) {}

func (d *desk) String() string { return "inspect" }
