package act

import (
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// Task is an action in the care of one scheduler, from Spawn or Install until it leaves. Actions are
// given theirs every turn; nobody makes one. All methods are for the scheduler's own thread.
//
//	          Spawn                 turn begins
//	free ───────────────▶ ready ─────────────────▶ running ──▶ Done, Failed: free
//	                        ▲                       │  │  │
//	                        ├──── Yield ────────────┘  │  └─ Async ─▶ offloaded ─┐
//	                        └──── wake ◀─── waiting ◀──┘ Wait                    │
//	                        ▲                                                    │
//	                        └────────────────────────────────── f has returned ──┘
//
// It is kept to one cache line: a scheduler walks over hundreds of thousands of them.
type Task struct {
	action Action
	s      *Scheduler
	next   *Task  // in whichever queue holds it; a task is in at most one
	turn   uint64 // rises when a turn begins and is never reset, also when the Task is used again
	timers *Timer // armed ones, newest first
	extra  *extra // what few tasks need; kept when the Task is used again
	state  state
	flags  flags
	left   uint32 // further turns under an order that bounds them
}

// extra is the part of a Task that most tasks go without.
type extra struct {
	remote  remote
	owned   []io.Closer
	offload *offload
}

type state uint8

const (
	free      state = iota
	ready           // in the scheduler's queue for its kind
	running         // in its turn
	waiting         // in no queue
	offloaded       // belongs to an offloaded function; in no queue
	exhausted       // out of turns under an order; in the queue of those
	abandoned       // dropped while offloaded: to be closed when the function returns
	leaving         // being closed: nobody can wake it any more
)

type flags uint8

const (
	isDemon    flags = 1 << iota
	background       // a demon that does not hold Run
	permit           // woken within its own turn: the coming Wait returns at once
	attended         // somebody was given this turn's Waker
	alone            // has been reported as waiting for nobody
	untold           // there is an order that it has not been told of
	offloading       // Offload was called in this turn
)

// Scheduler is where the task lives, for good.
func (t *Task) Scheduler() *Scheduler { return t.s }

// Action is what the task was spawned with.
func (t *Task) Action() Action { return t.action }

// Order is the latest order that made the terms stricter, nil if there is none. It may be read
// anywhere in the tree of actions.
func (t *Task) Order() shutdown.Order {
	t.s.touch()
	return t.s.order
}

// Err returns why the last action that failed in this turn did so, nil if none has. The scheduler reads it only when
// the whole task answers Failed, so a parent that can do without a child simply goes on.
func (t *Task) Err() error {
	t.s.touch()
	return t.s.err
}

// Failure is Err after an action has answered Failed, and never nil: if the action did not say why, Failure returns an
// error that says so.
func (t *Task) Failure() error {
	t.s.touch()
	return t.s.failure()
}

// Fail sets Err and returns Failed. A nil err is a bug and panics.
func (t *Task) Fail(err error) Directive {
	t.s.touch()
	if err == nil {
		panic("act: Fail without an error")
	}
	t.s.err = err
	return Failed
}

// Own makes c part of the task: it is closed when the task leaves, the last one first, before the
// action itself.
func (t *Task) Own(c io.Closer) {
	t.s.touch()
	x := t.more()
	x.owned = append(x.owned, c)
}

// Release undoes Own, for a c that is handed on to somebody else. It reports whether t owned c.
func (t *Task) Release(c io.Closer) bool {
	t.s.touch()
	if t.extra == nil {
		return false
	}
	for i, o := range slices.Backward(t.extra.owned) {
		if o == c {
			t.extra.owned = slices.Delete(t.extra.owned, i, i+1)
			return true
		}
	}
	return false
}

// WakeAfter arms tm to wake this task d after now, and Stop disarms it. An armed timer that is armed
// again moves; it fires once, in whatever turn that finds the task, and is disarmed when the task
// leaves. It reads the clock.
func (t *Task) WakeAfter(tm *Timer, d time.Duration) {
	t.WakeAt(tm, t.s.after(d))
}

// WakeAt is WakeAfter for a point in time on the scheduler's clock (see Scheduler.Now). One that has
// passed is due in the next pass.
func (t *Task) WakeAt(tm *Timer, at time.Duration) {
	t.s.touch()
	tm.arm(t, at, nil)
}

// String names the task after its action.
func (t *Task) String() string { return Name(t.action) }

func (t *Task) more() *extra {
	if t.extra == nil {
		t.extra = &extra{}
		t.extra.remote.task = t
		t.extra.remote.node = inbox.Node[recipient]{Of: &t.extra.remote}
	}
	return t.extra
}

// wake makes a waiting task ready; one that is in its turn keeps it for the Wait that may end it.
func (t *Task) wake() {
	switch t.state {
	case waiting:
		t.s.trace.woken(t)
		t.s.enqueue(t)
	case running:
		t.flags |= permit
	}
}

func (t *Task) stopTimers() {
	for t.timers != nil {
		if !t.timers.Stop() {
			panic("act: a Timer was overwritten while it was armed")
		}
	}
}

// leave empties the Task for its next use.
func (t *Task) leave() {
	t.closeAll()
	t.stopTimers() // also what a closer has armed
	t.turn++       // the wakers of the last turn are stale from here on
	t.flags = 0
}

// closeAll closes what the task owns, last in first out, then the action, and forgets them. It touches
// nothing that a Waker looks at, since it may run beside the scheduler's thread: see offload.run.
func (t *Task) closeAll() {
	if x := t.extra; x != nil {
		for n := len(x.owned) - 1; n >= 0; n = len(x.owned) - 1 { // a closer may change owned
			c := x.owned[n]
			x.owned = slices.Delete(x.owned, n, n+1)
			t.s.closeFor(t, c)
		}
		x.offload = nil
	}
	if c, ok := t.action.(io.Closer); ok {
		t.s.closeFor(t, c)
	}
	t.action = nil
}

// Name returns what logs and Cuts call a, which is an action or a function: its String if it has one, the name of a
// function in the program, else the type.
func Name(a any) string {
	switch a := a.(type) {
	case nil:
		return "nothing"
	case fmt.Stringer:
		return fmt.Sprint(named{a})
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.Func {
		if fn := runtime.FuncForPC(v.Pointer()); fn != nil {
			return fn.Name()
		}
	}
	return fmt.Sprintf("%T", a)
}

// named is printed by its String alone, and by fmt, which survives one that panics.
type named struct{ fmt.Stringer }
