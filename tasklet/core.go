package tasklet

import (
	"reflect"
	"sync"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/shutdown"
)

// core is what all views of a scheduler share.
//
// It has a mutex, unlike the rest of the house: directives come from any goroutine, and which one was the
// last has to be decided once, at the moment it is given, whether anybody runs or not. It is held for some
// ten instructions; no code of users and nothing that blocks is called under it.
//
// Entries that queue are ready in act, too, in the same order as long as nobody changes his place, so a
// tasklet has its turn among the tasks as any other. Where the orders differ it is this queue that counts:
// a turn of who is not its head is empty, and whoever becomes the head is woken.
type core struct {
	api  API
	kind kind
	runs sync.Mutex // held in Run

	mu       sync.Mutex         // guards all that follows
	known    map[Tasklet]*entry // the members
	born     uint64             // entries made so far
	queue    queue              // those that are to have a SYNC phase
	changed  []*entry           // something about their task is to be done on the thread; each once
	given    []*awaiting        // nobody waits for them any more
	launches []*entry           // to be handed to the executor
	dirty    bool               // there is something to settle
	desk     *desk              // nil: nobody runs
	turning  *entry             // whose SYNC phase is under way in a turn: its end settles
	draining bool               // somebody runs the phases of an Inline
	closed   bool               // the scheduler of a guest has been closed
	order    shutdown.Order     // as the task of the latest turn has it
	orders   []*given           // for this Run, or the next
	refused  error              // what this Run has to tell of the executor
	offloads int                // members that were dropped in a phase elsewhere
	logger   *zap.Logger        // of the latest scheduler beneath

	work []chore // of settle; the thread's
}

type kind uint8

const (
	owner  kind = iota // has a Run
	guest              // of a scheduler that somebody else runs
	inline             // has no thread
)

func newCore(a API, k kind) *core {
	return &core{api: a, kind: k, known: map[Tasklet]*entry{}}
}

func (c *core) root() *Scheduler { return &Scheduler{core: c} }

// unlock releases mu and has done what follows from what was done under it.
func (c *core) unlock() {
	d := c.desk
	ring := c.dirty && d != nil && !d.rung && c.turning == nil
	open := ring && d.open
	if ring {
		d.rung = true
	}
	launches, api := c.launches, c.api
	c.launches = nil
	c.mu.Unlock()
	if ring {
		d.ring(open)
	}
	execute(launches, api, d)
}

// admit makes t a member that is nowhere yet.
func (c *core) admit(t Tasklet) *entry {
	c.born++
	e := &entry{core: c, tasklet: t, hash: occupied.hash(t), kind: reflect.TypeOf(t), born: c.born}
	e.view = Scheduler{c, e}
	c.known[t] = e
	return e
}

// say follows a directive from outside of e's phase.
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

// resume is say for a right to go on: one that comes too early is kept for the next Wait.
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

// suspend makes e wait unless it is in a phase, where it is for the phase to say.
func (c *core) suspend(e *entry) {
	if e.place != inPhase {
		c.put(e, e.remembered(Wait))
	}
}

// put gives e another place.
func (c *core) put(e *entry, d Directive) {
	c.takeOut(e)
	switch d {
	case Sync:
		e.place = queued
		c.queue.push(e)
	case Wait:
		e.place = waiting
	case Async:
		e.place = handed
		if c.desk != nil {
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
		c.queue.remove(e)
		c.dirty = true // there may be another head
	}
	e.place = nowhere
}

// begin takes e into a phase, unless its tasklet is in one elsewhere. Then it goes on with d when that has
// ended; an Inline has nobody who would, so there it waits.
func (c *core) begin(e *entry, d Directive) bool {
	c.takeOut(e)
	patient := e
	if c.kind == inline {
		patient = nil
	}
	switch {
	case occupied.enter(e.tasklet, e.hash, patient):
		e.place = inPhase
		return true
	case patient != nil:
		e.place, e.blocked = blocked, d
	default:
		e.place = waiting
	}
	return false
}

// end takes e out of its phase, which has answered d. The ASYNC of a phase that With has run outside of Run
// comes to nothing; that of one whose Run has ended meanwhile waits for the next, like all that was left.
func (c *core) end(e *entry, d Directive, with bool) (err error) {
	e.place = nowhere
	switch {
	case e.gone:
		c.release(e)
	case d == Async && c.desk == nil && (with || c.kind == inline):
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

// forget ends this life of e. A task that has yet to leave fails with err, if there is one.
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

// release lets go of the tasklet of e, which is gone, unless its phase is under way or its task has yet to
// leave.
func (c *core) release(e *entry) {
	switch {
	case e.place == inPhase:
	case e.tasked:
		c.touch(e)
	default:
		e.tasklet = nil
	}
}

// giveUp has what e awaited end.
func (c *core) giveUp(e *entry) {
	c.given = append(c.given, e.await)
	e.await = nil
	c.dirty = true
}

// touch has settle look at e. The end of a turn sees to its own, attach to all.
func (c *core) touch(e *entry) {
	if c.desk == nil || e == c.turning {
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

// settle does what is to be done about tasks, and unlocks. It belongs to the thread.
func (c *core) settle() {
	if !c.dirty || c.desk == nil {
		c.unlock()
		return
	}
	c.dirty, c.desk.rung = false, false
	s, head, given := c.desk.s, c.queue.head, c.given
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
		head.waker.Wake()
	}
	for _, a := range given {
		a.waker.Wake()
	}
	c.work = work
}
