package tasklet

import (
	"fmt"
	"reflect"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// entry is one life of a tasklet under one scheduler, and its task there.
//
//	              ┌──────────── Sync ────────────┐
//	              ▼                              │
//	Schedule ─▶ queued ────── its turn ─────▶ inPhase ──▶ Done: gone
//	          ╲ handed ── the executor's ──▶   │  ▲
//	           ╲  ▲ ╰─────── Async ────────────┤  │ With, from anywhere
//	            ▼ │ resumed                    │
//	           waiting ◀─────── Wait ──────────┘
//
// Who is to begin a phase while its tasklet is in one elsewhere is blocked until that has ended.
type entry struct {
	core *core
	hash uint64       // of the tasklet
	kind reflect.Type // of the tasklet; its name when it has been let go
	view Scheduler
	born uint64 // the order of admission

	// Guarded by core.mu.
	tasklet    Tasklet // nil some time after it is gone
	place      place
	blocked    Directive      // what it is blocked for
	said       Directive      // by Schedule in this phase, for its Wait
	resumed    Directive      // by a Rescheduler, for the next Wait
	gone       bool           // this life is over
	changed    bool           // in core.changed
	tasked     bool           // has a task; written on the thread only
	err        error          // why it is gone, until that is reported
	refused    bool           // the executor was too quick
	sent       bool           // the executor has async, and has not called it yet
	patient    bool           // in the patients of an occupant
	untold     shutdown.Order // to be told before the next phase
	await      *awaiting      // what it waits for
	awaited    error          // how that ended
	prev, next *entry         // in core.queue

	// The thread's.
	waker act.Waker // of the latest turn
}

type place uint8

const (
	nowhere place = iota
	queued
	inPhase
	waiting
	handed  // to the executor, but not begun
	blocked // its tasklet is in a phase of another scheduler, or in the last one of an earlier life
)

// remembered is what comes of d: a Wait consumes what was said in its phase, or resumed before.
func (e *entry) remembered(d Directive) Directive {
	if d != Wait {
		return d
	}
	if e.said != 0 {
		d = e.said
	} else if e.resumed != 0 {
		d = e.resumed
	}
	e.said, e.resumed = 0, 0
	return d
}

// directive is what put e where it is.
func (e *entry) directive() Directive {
	switch e.place {
	case queued:
		return Sync
	case handed:
		return Async
	case blocked:
		return e.blocked
	}
	return Wait
}

// wantsTurn tells whether the task of e has anything to do.
func (e *entry) wantsTurn() bool {
	return e.place == queued || e.place != inPhase && (e.gone || e.untold != nil)
}

// Act is a turn: a SYNC phase, if e is due for one.
func (e *entry) Act(t *act.Task) act.Directive {
	c := e.core
	e.waker = t.Waker()
	c.mu.Lock()
	c.order = origin(t.Order())
	switch {
	case e.untold == nil:
	case c.order == nil:
		e.spend()
	default:
		e.tell()
		c.mu.Lock()
	}
	// An order makes all ready at once and may bound their turns: who queues has his phase in the turn that
	// he gets, whoever is the head. For who does not queue, being told costs a turn: see Scheduler.Shutdown.
	if e.place != queued || c.queue.head != e && c.order == nil || !c.begin(e, Sync) {
		return e.verdict(t, act.Wait)
	}
	c.turning = e
	c.mu.Unlock()
	d := e.phase(false, nil)
	blocked := occupied.leave(e.tasklet, e.hash)
	c.mu.Lock()
	_ = c.end(e, d, false)
	c.turning = nil
	verdict := act.Wait
	if e.place == queued {
		verdict = act.Yield
	}
	verdict = e.verdict(t, verdict)
	retry(blocked)
	return verdict
}

// verdict settles what a turn has brought, and unlocks. d is for an e that is not gone.
func (e *entry) verdict(t *act.Task, d act.Directive) act.Directive {
	err := e.err
	if e.gone && e.place != inPhase {
		d, e.err = act.Done, nil
	}
	e.core.settle()
	if d == act.Done && err != nil {
		return t.Fail(err)
	}
	return d
}

// Stop tells the tasklet, now or after the phase that it is in.
func (e *entry) Stop(_ *act.Task, o shutdown.Order) {
	e.core.mu.Lock()
	e.core.order = origin(o)
	if _, wants := e.tasklet.(Stopper); wants && !e.gone {
		e.untold = e.core.order
	}
	e.tell()
}

// spend forgets an order whose Run ended before it could be told.
func (e *entry) spend() {
	e.untold = nil
	if e.place == handed {
		e.core.launch(e) // async has kept out of the way
	}
}

// tell calls Stop like a phase that answers what e was about to do anyway. It unlocks.
func (e *entry) tell() {
	c := e.core
	o := e.untold
	if o == nil || e.gone || e.place == inPhase || !occupied.enter(e.tasklet, e.hash, e) {
		c.mu.Unlock()
		return
	}
	d := e.directive()
	c.takeOut(e)
	e.place, e.untold = inPhase, nil
	c.unlock()
	d = e.phase(false, func() Directive {
		e.tasklet.(Stopper).Stop(&e.view, o)
		return d
	})
	_ = e.finish(d, false)
}

// Close is called when the task leaves. One whose tasklet goes on has been dropped, unless Run has detached.
func (e *entry) Close() error {
	c := e.core
	c.mu.Lock()
	t, err, logger := e.tasklet, e.err, c.logger
	if e.tasked {
		e.tasked, e.err = false, nil
		if !e.gone && e.place == inPhase {
			c.offloads++
		}
		c.forget(e, nil)
		c.release(e)
	}
	c.unlock()
	if err != nil { // no turn has come to fail it
		report(logger, t, err)
	}
	return nil
}

// String names the tasklet. One that has been let go meanwhile, elsewhere, is named by its type.
func (e *entry) String() string {
	e.core.mu.Lock()
	t := e.tasklet
	e.core.mu.Unlock()
	if t == nil {
		return e.kind.String()
	}
	return name(t)
}

func name(t Tasklet) string {
	if s, ok := t.(fmt.Stringer); ok {
		return fmt.Sprint(named{s})
	}
	return fmt.Sprintf("%T", t)
}

// named is printed by its String alone, and by fmt, which survives one that panics.
type named struct{ fmt.Stringer }
