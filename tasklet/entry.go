package tasklet

import (
	"reflect"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/chain"
	"github.com/daimon-go/daimon/shutdown"
)

// entry is the membership of a tasklet in one Runner, until it is Done, and its task there. While the tasklet is in a
// phase under another Runner, the entry is blocked.
type entry struct {
	core *core
	hash uint64       // of the tasklet
	kind reflect.Type // of the tasklet; names the entry after the tasklet is released
	view Runner
	born uint64 // the order of admission

	// Guarded by core.mu.
	tasklet Tasklet // nil some time after the entry is gone
	place   place
	blocked Directive          // the Directive that it is blocked for
	said    Directive          // by Schedule in this phase, for its Wait
	resumed Directive          // by a Rescheduler, for the next Wait
	gone    bool               // no longer a member
	changed bool               // in core.changed
	tasked  bool               // has a task; written on the thread in Run only
	err     error              // why it is gone, until reported
	refused bool               // the executor tried to run its phase on the thread in Run
	sent    bool               // the executor has async and has not called it yet
	retried bool               // in activePhase.retry
	untold  shutdown.Order     // to be told before the next phase
	await   *awaiting          // of the latest Await
	awaited error              // the result of that
	node    chain.Node[*entry] // in core.queue

	// Belongs to the thread in Run.
	waker act.Waker // of the latest turn
}

type place uint8

const (
	nowhere place = iota
	queued
	inPhase
	waiting
	handed  // to the executor and not begun
	blocked // its tasklet is in a phase under another Runner, or in the last phase of an earlier entry
)

// remembered returns the Directive that follows d: a Wait consumes a Directive of Schedule in its phase, or of an
// earlier Resume.
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

// directive returns the Directive that put e in its place.
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

// wantsTurn reports whether the task of e has anything to do.
func (e *entry) wantsTurn() bool {
	return e.place == queued || e.place != inPhase && (e.gone || e.untold != nil)
}

// Act runs a SYNC phase, if e is due for one.
func (e *entry) Act(t *act.Task) act.Directive {
	c := e.core
	e.waker = t.Waker()
	c.mu.Lock()
	ordered := t.Order() != nil
	switch {
	case e.untold == nil:
	case !ordered: // its Run has ended before the tasklet was told
		if e.untold = nil; e.place == handed {
			c.launch(e) // async has left it alone
		}
	default:
		e.tell(t)
		c.mu.Lock()
	}
	// A shutdown makes all tasks ready at once and may bound their turns, so a queued entry has its phase in this turn
	// even if it is not the head. For other entries the shutdown takes a turn: see Runner.Shutdown.
	if e.place != queued || c.queue.First != &e.node && !ordered || !c.begin(e, Sync) {
		return e.endTurn(t, act.Wait)
	}
	c.turning = e
	c.mu.Unlock()
	d := e.phase(false, nil)
	blocked := active.leave(e.tasklet, e.hash)
	c.mu.Lock()
	_ = c.end(e, d, false)
	c.turning = nil
	next := act.Wait
	if e.place == queued {
		next = act.Yield
	}
	next = e.endTurn(t, next)
	retry(blocked)
	return next
}

func (e *entry) Describe(d *act.Description) {
	e.core.mu.Lock()
	place, await := e.place, e.await
	e.core.mu.Unlock()
	if await != nil {
		d.WaitsFor("the action of its Await")
	} else if place != nowhere {
		d.WaitsFor([...]string{
			waiting: "a Rescheduler",
			queued:  "its turn among the tasklets",
			handed:  "a place for its ASYNC phase",
			inPhase: "its ASYNC phase, on another goroutine",
			blocked: "a phase of its tasklet elsewhere",
		}[place])
	}
}

// endTurn settles and unlocks, and returns the Directive of the turn: d, unless e is gone.
func (e *entry) endTurn(t *act.Task, d act.Directive) act.Directive {
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

// Stop tells the tasklet of a shutdown, now or after its present phase.
func (e *entry) Stop(t *act.Task, o shutdown.Order) {
	e.core.mu.Lock()
	if _, wants := e.tasklet.(act.Stopper); wants && !e.gone {
		e.untold = origin(o)
	}
	e.tell(t)
}

// tell calls the tasklet's Stop, as a phase that returns the Directive for what e was about to do anyway. It unlocks.
func (e *entry) tell(t *act.Task) {
	c := e.core
	o := e.untold
	if o == nil || e.gone || e.place == inPhase || !active.enter(e.tasklet, e.hash, e) {
		c.mu.Unlock()
		return
	}
	d := e.directive()
	c.takeOut(e)
	e.place, e.untold = inPhase, nil
	c.unlock()
	d = e.phase(false, func() Directive {
		e.tasklet.(act.Stopper).Stop(t, o)
		return d
	})
	_ = e.finish(d, false)
}

// Close is called when the task ends. If e is still a member it was dropped, unless Run has detached.
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
	if err != nil { // no turn failed with it
		report(logger, t, err)
	}
	return nil
}

// String names the tasklet, by its type if it was released meanwhile.
func (e *entry) String() string {
	e.core.mu.Lock()
	t := e.tasklet
	e.core.mu.Unlock()
	if t == nil {
		return e.kind.String()
	}
	return act.Name(t)
}
