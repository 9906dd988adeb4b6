package tasklet

import (
	"hash/maphash"
	"reflect"
	"sync"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/chain"
)

// core is the state that all views of a Runner share.
//
// It has a mutex, unlike most of Daimon: Directives come from any goroutine, and which one is the last has to be
// decided when it is given, whether or not Run is active. The mutex is held for some ten instructions; no user code and
// nothing that blocks is called under it.
//
// The tasks of queued entries are ready in act, in the same order as long as no entry moves, so a tasklet has its
// turns among the tasks like any other. Where the orders differ, this queue decides: a turn of an entry that is not
// the head is empty, and a new head is woken.
type core struct {
	config act.Config // of the act.Scheduler of each Run
	kind   kind
	runs   sync.Mutex // held in Run

	mu       sync.Mutex         // guards all fields that follow
	known    map[Tasklet]*entry // the members of the Runner
	born     uint64             // entries made so far
	queue    chain.List[*entry] // entries due for a SYNC phase, in order
	changed  []*entry           // their tasks are to be spawned or woken on the thread; each once
	given    []*awaiting        // no longer wanted; to be woken
	launches []*entry           // to be handed to the executor
	dirty    bool               // settle has something to do
	monitor  *monitor           // nil: not running
	turning  *entry             // its SYNC phase runs in a turn, which calls settle when it ends
	draining bool               // a goroutine runs the phases of an Inline
	closed   bool               // the act.Scheduler of a guest is closed
	orders   []*given           // for this Run, or the next
	refused  error              // errSynchronous, if the executor of this Run has earned it
	offloads int                // members dropped during an ASYNC phase
	logger   *zap.Logger        // of the latest act.Scheduler

	work []chore // of settle; belongs to the thread in Run
}

type kind uint8

const (
	owner  kind = iota // has a Run
	guest              // on an act.Scheduler that runs for others as well: see RunnerOf
	inline             // has no thread
)

func newCore(cfg act.Config, k kind) *core {
	return &core{config: cfg, kind: k, known: map[Tasklet]*entry{}}
}

// unlock releases mu, wakes the monitor if settle has something to do, and hands launches to the executor.
func (c *core) unlock() {
	m := c.monitor
	ring := c.dirty && m != nil && !m.rung && c.turning == nil
	open := ring && m.open
	if ring {
		m.rung = true
	}
	launches := c.launches
	c.launches = nil
	c.mu.Unlock()
	if ring {
		m.ring(open)
	}
	for _, e := range launches {
		m.s.Internals().Executor().Execute(e.async)
	}
}

// admit returns the entry of t. It makes a new member, in no place yet, if there is none.
func (c *core) admit(t Tasklet) *entry {
	if e := c.known[t]; e != nil {
		return e
	}
	c.born++
	e := &entry{core: c, tasklet: t, hash: maphash.Comparable(seed, t), kind: reflect.TypeOf(t), born: c.born}
	e.view, e.node.Of = Runner{c, e}, e
	c.known[t] = e
	return e
}

// say carries out a Directive that was given to Schedule.
func (c *core) say(e *entry, d Directive) {
	if d == Wait {
		e.said, e.resumed = 0, 0
	}
	switch {
	case d == Done:
		c.forget(e, nil)
	case e.place != inPhase:
		c.put(e, d)
	case d != Wait:
		e.said = d
	}
}

// resume carries out a Directive of a Rescheduler. One that comes before a Wait is kept for it.
func (c *core) resume(e *entry, d Directive) {
	switch {
	case e.gone, d == Wait:
	case d == Done:
		c.forget(e, nil)
	case e.place == waiting:
		c.put(e, d)
	default:
		e.said, e.resumed = 0, d
	}
}

// suspend makes e wait, unless it is in a phase, whose Directive decides.
func (c *core) suspend(e *entry) {
	if e.place != inPhase {
		c.put(e, e.remembered(Wait))
	}
}

// put moves e to the place for d.
func (c *core) put(e *entry, d Directive) {
	c.takeOut(e)
	switch d {
	case Sync:
		e.place = queued
		c.queue.Append(&e.node)
	case Wait:
		e.place = waiting
	case Async:
		e.place = handed
		if c.monitor != nil {
			c.launch(e)
		}
	}
	if e.await != nil && d != Wait {
		c.giveUp(e)
	}
	c.touch(e)
}

func (c *core) takeOut(e *entry) {
	if e.place == queued {
		e.node.Remove()
		c.dirty = true // the head may have changed
	}
	e.place = nowhere
}

// begin takes e into a phase and reports whether it could. If the tasklet is in a phase under another Runner, e goes
// on with d when that has ended. Under an Inline nothing would continue it, so there e waits.
func (c *core) begin(e *entry, d Directive) bool {
	c.takeOut(e)
	retried := e
	if c.kind == inline {
		retried = nil
	}
	switch {
	case active.enter(e.tasklet, e.hash, retried):
		e.place = inPhase
		return true
	case retried != nil:
		e.place, e.blocked = blocked, d
	default:
		e.place = waiting
	}
	return false
}

// end takes e out of its phase, which has returned d. An Async returned outside of Run is ErrNotRunning if With or an
// Inline ran the phase; otherwise it stays for the next Run.
func (c *core) end(e *entry, d Directive, with bool) (err error) {
	e.place = nowhere
	switch {
	case e.gone:
		c.release(e)
	case d == Async && c.monitor == nil && (with || c.kind == inline):
		c.forget(e, nil)
		err = ErrNotRunning
	case d == Done:
		c.forget(e, nil)
	default:
		c.put(e, e.remembered(d))
	}
	e.said = 0
	return err
}

// forget ends the membership of e. If e has a task, the task fails with err unless that is nil.
func (c *core) forget(e *entry, err error) {
	if e.gone {
		return
	}
	delete(c.known, e.tasklet)
	e.gone, e.err, e.said, e.resumed = true, err, 0, 0
	if e.place != inPhase {
		c.takeOut(e)
	}
	if e.await != nil {
		c.giveUp(e)
	}
	c.release(e)
}

// release drops the reference to the tasklet of e, which is no longer a member, when no phase and no task needs it.
func (c *core) release(e *entry) {
	switch {
	case e.place == inPhase:
	case e.tasked:
		c.touch(e)
	default:
		e.tasklet = nil
	}
}

// giveUp ends the Await of e.
func (c *core) giveUp(e *entry) {
	c.given = append(c.given, e.await)
	e.await = nil
	c.dirty = true
}

// touch makes settle check e. A turn checks its own entry when it ends, and attach checks all of them.
func (c *core) touch(e *entry) {
	if c.monitor == nil || e == c.turning {
		return
	}
	c.dirty = true
	if !e.changed {
		e.changed = true
		c.changed = append(c.changed, e)
	}
}

// chore is a task to be spawned or woken.
type chore struct {
	e     *entry
	spawn bool
}

// settle spawns and wakes tasks as needed, and unlocks. It is called on the thread in Run.
func (c *core) settle() {
	if !c.dirty || c.monitor == nil {
		c.unlock()
		return
	}
	c.dirty, c.monitor.rung = false, false
	s, head, given := c.monitor.s, c.queue.First, c.given
	work := c.work[:0]
	for _, e := range c.changed {
		e.changed = false
		switch {
		case e.tasked && e.wantsTurn():
			work = append(work, chore{e, false})
		case !e.tasked && !e.gone:
			e.tasked = true
			work = append(work, chore{e, true})
		}
	}
	c.changed, c.given = c.changed[:0], nil
	c.unlock()
	for _, w := range work {
		if w.spawn {
			s.Spawn(w.e)
		} else {
			w.e.waker.Wake()
		}
	}
	if head != nil {
		head.Of.waker.Wake()
	}
	for _, a := range given {
		a.waker.Wake()
	}
	c.work = work
}
