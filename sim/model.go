package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// model checks a scheduler. It follows the Trace, so it knows which tasks are ready, and in which order. The world
// fails when a turn is given to the wrong task, when a pass skips a demon, or when a pass is late.
type model struct {
	turns   int // between two passes
	tasks   map[*act.Task]*task
	kinds   map[string]*kind
	spawned uint64
	queue   fifo[*task]
	demons  fifo[*task]
	due     int // demons that were ready at the last pass and have not had a turn since
	passes  int
	taken   int // turns of tasks since the last pass
	running *task
	bounded bool          // a shutdown bounds turns, so tasks may leave the queue
	window  time.Duration // until then, at most, turns are not counted
}

// task is the model's state of a task or demon.
type task struct {
	r        *runner
	serial   uint64
	action   act.Action
	demon    bool
	kind     *kind
	last     bool // it ends last of all, so it may be dropped before it is notified
	state    state
	since    time.Duration
	pass     int // of its last turn, if it is a demon
	left     int // turns that a shutdown leaves it
	notified int // the number of orders that it was notified of
}

type state uint8

const (
	ready state = iota
	running
	waiting
	away // offloaded
	over
)

func (s state) String() string {
	return [...]string{"is ready", "has its turn", "waits", "waits for its offloaded function", "has ended"}[s]
}

func (t *task) String() string {
	kind := "task"
	if t.demon {
		kind = "demon"
	}
	name := act.Name(t.action)
	if !strings.Contains(name, " ") { // the name of a function or a type, with the path of its package
		name = name[strings.LastIndexByte(name, '/')+1:]
	}
	return fmt.Sprintf("%v %s %d (%s)", t.r, kind, t.serial, name)
}

func (t *task) number() uint64 {
	return numbersOfTasks | t.r.server.kernel.id<<48 | uint64(t.r.s.Index())<<32 | t.serial
}

// of returns the queue that t is in when it is ready.
func (m *model) of(t *task) *fifo[*task] {
	if t.demon {
		return &m.demons
	}
	return &m.queue
}

func (r *runner) becomes(t *task, s state) {
	t.state, t.since = s, r.w.now
	if s == ready {
		r.model.of(t).push(t)
	}
}

// trace returns the functions that keep the models of a Server.
func (v *Server) trace() *act.Trace {
	of := func(s *act.Scheduler) *runner { return v.runners[s.Index()] }
	return &act.Trace{
		Spawned:   func(t *act.Task) { of(t.Scheduler()).taskSpawned(t) },
		TurnStart: func(t *act.Task) { of(t.Scheduler()).turnBegins(t) },
		TurnEnd:   func(t *act.Task, d act.Directive) { of(t.Scheduler()).turnEnds(t, d) },
		Woken:     func(t *act.Task) { of(t.Scheduler()).taskWoken(t) },
		Told:      func(t *act.Task, o shutdown.Order) { of(t.Scheduler()).taskNotified(t, o) },
		Ended:     func(t *act.Task, err error) { of(t.Scheduler()).taskEnded(t, err) },
		Pass:      func(s *act.Scheduler) { of(s).pass() },
	}
}

// observe keeps the model of r of what comes into the inbox.
func (v *Server) observe(r *runner) {
	r.s.Internals().ObserveInbox(func(o shutdown.Order) {
		if o != nil {
			v.ordered(r, o)
			return
		}
		v.w.checkGoroutine(r.s)
		r.wake()
	})
}

// known returns the model of a task. A task that was not spawned is a bug of the framework.
func (r *runner) known(t *act.Task) *task {
	m := r.model.tasks[t]
	if m == nil {
		r.w.Errorf("%v: %v was never spawned", r, t)
		m = &task{r: r, action: t.Action(), state: over, kind: r.kind(t)}
	}
	return m
}

func (r *runner) taskSpawned(t *act.Task) {
	m := &r.model
	if m.tasks[t] != nil {
		r.w.Errorf("%v: the memory of %v is used again before it has ended", r, m.tasks[t])
	}
	m.spawned++
	x := &task{r: r, pass: -1, left: math.MaxInt, serial: m.spawned, action: t.Action(), demon: t.Demon(), last: r.s.Internals().EndsLast(t), kind: r.kind(t)}
	x.kind.spawned++
	m.tasks[t] = x
	r.becomes(x, ready)
	r.w.note(isSpawned, x, 0, 0)
	r.wake()
}

func (r *runner) turnBegins(t *act.Task) {
	r.w.now += turnTime // so that the time that the pass has read grows old
	m, x := &r.model, r.known(t)
	if x.state != ready {
		r.w.Errorf("%v has a turn, but it %v since %v", x, x.state, x.since)
	}
	if m.running != nil {
		r.w.Errorf("%v has a turn inside the turn of %v", x, m.running)
	}
	for q := m.of(x); len(*q) > 0; {
		first := q.pop()
		if first == x {
			break
		}
		if !m.bounded { // otherwise first is out of turns
			r.w.Errorf("%v has a turn before %v, which is ready since %v", x, first, first.since)
			break
		}
	}
	if x.demon {
		m.due = max(0, m.due-1)
		if x.pass == m.passes {
			r.w.Errorf("%v has a second turn in one pass", x)
		}
		x.pass = m.passes
	} else if m.taken++; m.taken > m.turns {
		r.w.Errorf("%v has turn %d since the last pass, of %d at most", x, m.taken, m.turns)
	}
	if t.Scheduler().Now() >= m.window {
		x.left--
	}
	if x.left < 0 && !x.demon {
		r.w.Errorf("%v has more turns than its order allows", x)
	}
	m.running = x
	x.state = running
	r.accepts = 0
	r.begun++
	x.kind.turns++
	r.w.note(turnBegins, x, 0, 0)
}

func (r *runner) turnEnds(t *act.Task, d act.Directive) {
	x := r.known(t)
	if x != r.model.running {
		r.w.Errorf("a turn of %v ends that has not begun", x)
	}
	r.model.running = nil
	r.w.note(turnEnds, x, int64(d), 0)
	r.lend(nil)
	switch d {
	case act.Yield:
		r.becomes(x, ready)
	case act.Wait:
		r.becomes(x, waiting)
	case act.Async:
		r.becomes(x, away)
	default:
		x.state = over
	}
}

func (r *runner) taskWoken(t *act.Task) {
	x := r.known(t)
	if x.state != waiting && x.state != away {
		r.w.Errorf("%v is woken, but it %v", x, x.state)
	}
	r.w.note(isWoken, x, 0, 0)
	r.becomes(x, ready)
}

func (r *runner) taskNotified(t *act.Task, o shutdown.Order) {
	x := r.known(t)
	if x.notified++; x.notified > r.orders {
		r.w.Errorf("%v is notified of an order twice", x)
	}
	p := o.Policy().Resolved()
	if ends := t.Scheduler().Now() + p.Spread; r.model.window == 0 || ends < r.model.window {
		r.model.window = ends
	}
	if p.Turns > 0 {
		r.model.bounded = true
		x.left = min(x.left, p.Turns)
	}
	r.w.note(isNotified, x, 0, 0)
}

func (r *runner) taskEnded(t *act.Task, err error) {
	m, x := &r.model, r.known(t)
	if x == m.running { // a panic
		m.running = nil
	}
	if p := (*act.Panic)(nil); errors.As(err, &p) && !r.w.options.Panics {
		r.w.Errorf("%v panicked: %v\n%s", x, p.Value, p.Stack)
	}
	if q := m.of(x); x.state == ready {
		*q = slices.DeleteFunc(*q, func(y *task) bool { return y == x })
	}
	m.due = min(m.due, len(m.demons)) // it may have been among them
	x.state = over
	delete(m.tasks, t)
	r.w.note(isEnded, x, 0, 0)
}

func (r *runner) pass() {
	m := &r.model
	for m.due > 0 && m.bounded && m.demons[0].left <= 0 { // it is out of turns
		m.demons.pop()
		m.due--
	}
	if m.due > 0 {
		r.w.Errorf("%v: the last pass skipped %d demons, first %v", r, m.due, m.demons[0])
	}
	m.due, m.taken = len(m.demons), 0
	m.passes++
	r.w.note(passBegins, r, 0, 0)
}

// sorted returns the tasks in the order in which they were spawned.
func (r *runner) sorted() []*task {
	return slices.SortedFunc(maps.Values(r.model.tasks), func(a, b *task) int { return cmp.Compare(a.serial, b.serial) })
}

// waits lists all tasks and clients that have not ended.
func (w *World) waits() string {
	var b strings.Builder
	for _, v := range w.servers {
		for _, r := range v.runners {
			for _, x := range r.sorted() {
				fmt.Fprintf(&b, "  %v %v since %v\n", x, x.state, x.since)
			}
		}
	}
	for _, c := range w.clients {
		for _, s := range c.scripts {
			if !s.over {
				fmt.Fprintf(&b, "  %v", s)
				if c.end != nil {
					fmt.Fprintf(&b, " (connection %d)", c.end.c.id)
				}
				fmt.Fprintf(&b, " waits for %s\n", cmp.Or(s.waits, "nothing"))
			}
		}
	}
	for _, r := range w.functions {
		fmt.Fprintf(&b, "  %v\n", r)
	}
	if b.Len() > 0 {
		return "still waiting:\n" + b.String()
	}
	return ""
}
