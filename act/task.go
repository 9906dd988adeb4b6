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

// Task is an action that runs on one scheduler, from Spawn, Install or Attach until it has finished or is dropped. Its
// action receives it every turn. All methods are for the scheduler's own thread.
//
//	          Spawn                 turn begins
//	free ───────────────▶ ready ─────────────────▶ running ──▶ Done, Failed: free
//	                        ▲                       │  │  │
//	                        ├──── Yield ────────────┘  │  └─ Async ─▶ offloaded ─┐
//	                        └──── wake ◀─── waiting ◀──┘ Wait                    │
//	                        ▲                                                    │
//	                        └────────────────────────────────── f has returned ──┘
//
// It fits into one cache line: a scheduler walks over hundreds of thousands of them.
type Task struct {
	action Action
	s      *Scheduler
	next   *Task  // in its queue; a task is in at most one
	turn   uint64 // the number of the turn; it is never reset, not even when the Task is used again
	timers *Timer // armed ones, newest first
	extra  *extra // what few tasks need; kept when the Task is used again
	state  state
	flags  flags
	chunk  uint16 // of the slab; see slab.place
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
	ready           // in the scheduler's queue for tasks or demons
	running         // in its turn
	waiting         // in no queue
	offloaded       // an offloaded function runs; in no queue
	exhausted       // it has used up its turns under an order; in a queue of its own
	abandoned       // dropped while offloaded; closed when the function returns
	leaving         // being closed: it can no longer be woken
)

type flags uint8

const (
	isDemon    flags = 1 << iota
	background       // a demon that does not keep Run from returning: see Attach
	permit           // woken within its own turn: after Wait it is ready at once
	attended         // this turn's Waker or order was asked for, so something may wake it
	alone            // has been reported as waiting without a Waker
	untold           // there is an order that it has not been told of
	offloading       // Offload was called in this turn
	last             // it ends last of all: see InstallLast
)

// Scheduler returns the scheduler that runs the task. It never changes.
func (t *Task) Scheduler() *Scheduler { return t.s }

// Action returns what the task was spawned with.
func (t *Task) Action() Action { return t.action }

// Demon reports whether the task is a demon: whether its action was installed or attached, and not spawned.
func (t *Task) Demon() bool { return t.flags&isDemon != 0 }

// Order returns the latest order that made the terms stricter, nil if there is none, and if the task is not to be told yet.
func (t *Task) Order() shutdown.Order {
	t.s.touch()
	t.flags |= attended
	return t.order()
}

func (t *Task) order() shutdown.Order {
	if t.s.order == nil || t.flags&last != 0 && !t.s.lastTold || undisturbed(t.action) {
		return nil
	}
	return t.s.order
}

// Err returns why the last action that failed in this turn did so, nil if none has. The scheduler reads it only when
// the whole task answers Failed, so a parent that can do without a child simply goes on.
func (t *Task) Err() error {
	t.s.touch()
	return t.s.err
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

// Own has c closed when the task leaves the scheduler, before the action itself is closed. What was given to Own last
// is closed first.
func (t *Task) Own(c io.Closer) {
	t.s.touch()
	x := t.more()
	x.owned = append(x.owned, c)
}

// Release undoes Own: c is not closed with the task. It reports whether the task owned c.
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

// WakeAfter arms tm to wake this task d after now. It reads the clock. A timer that is armed already is moved. It fires
// once, whatever the task waits for then, and is disarmed when the task leaves. Timer.Stop disarms it before.
func (t *Task) WakeAfter(tm *Timer, d time.Duration) {
	t.WakeAt(tm, t.s.after(d))
}

// WakeAt is WakeAfter for a point in time on the scheduler's clock (see [Scheduler.Now]). A point that has passed is due
// in the next pass.
func (t *Task) WakeAt(tm *Timer, at time.Duration) {
	t.s.touch()
	tm.arm(t, at, nil)
}

// String returns the [Name] of the action.
func (t *Task) String() string { return Name(t.action) }

func (t *Task) more() *extra {
	if t.extra == nil {
		t.extra = &extra{}
		t.extra.remote.task = t
		t.extra.remote.node = inbox.Node[remoteEvent]{Of: &t.extra.remote}
	}
	return t.extra
}

// wake makes a waiting task ready. A task in its turn remembers it for the Wait that may end the turn.
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
	t.turn++       // from here on the wakers of the last turn are stale
	t.flags = 0
}

// closeAll closes what the task owns, the last first, then the action. It touches nothing that a Waker looks at, since it
// may run beside the scheduler's thread: see offload.run.
func (t *Task) closeAll() {
	if x := t.extra; x != nil {
		for n := len(x.owned) - 1; n >= 0; n = len(x.owned) - 1 { // a closer may change owned
			c := x.owned[n]
			x.owned = slices.Delete(x.owned, n, n+1)
			t.closeOne(c)
		}
		x.offload = nil
	}
	if c, ok := t.action.(io.Closer); ok {
		t.closeOne(c)
	}
	t.action = nil
}

func (t *Task) closeOne(c io.Closer) {
	if p := t.s.guard(func() { t.s.close(c) }); p != nil {
		t.s.report(t, p)
	}
}

// Name returns what logs and Cuts call a, which is an action or a function: the result of its String method if it has
// one, the name of a function in the program, otherwise the type.
func Name(a any) string {
	switch a := a.(type) {
	case nil:
		return "nothing"
	case fmt.Stringer:
		return stringOf(a)
	}
	if v := reflect.ValueOf(a); v.Kind() == reflect.Func {
		if fn := runtime.FuncForPC(v.Pointer()); fn != nil {
			return fn.Name()
		}
	}
	return reflect.TypeOf(a).String()
}

// stringOf allocates only what String does, unless it panics: then fmt says so.
func stringOf(a fmt.Stringer) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprint(struct{ fmt.Stringer }{a}) // only its String
		}
	}()
	return a.String()
}
