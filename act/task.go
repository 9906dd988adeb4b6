package act

import (
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/inbox"
	"github.com/daimon-go/daimon/shutdown"
)

// Task is an action that runs on one scheduler, from Spawn, Install or Attach until it has finished or is dropped. The
// action receives its Task in every turn, and must not use it after the last one. All methods are for the scheduler's
// own thread.
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
	next   *Task      // in its queue; a task is in at most one
	turn   uint64     // the number of the turn; it is never reset, not even when the Task is used again
	timers *timerNode // armed ones, newest first
	extra  *extra     // what few tasks need; kept when the Task is used again
	state  state
	flags  flags
	chunk  uint16 // of the slab; see slab.place
	left   uint32 // further turns under a shutdown that bounds them
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
	exhausted       // it has used up its turns under a shutdown; in a queue of its own
	abandoned       // dropped while offloaded; closed when the function returns
	leaving         // being closed: it can no longer be woken
)

type flags uint8

const (
	isDemon    flags = 1 << iota
	background       // a demon that does not keep Run from returning: see Attach
	permit           // woken within its own turn: after Wait it is ready at once
	attended         // this turn's Waker or Order was asked for, so something may wake it
	alone            // has been reported as waiting without a Waker
	untold           // there is a shutdown request that it has not been told of
	offloading       // Offload was called in this turn
	last             // it ends last of all: see InstallLast
)

// Scheduler returns the scheduler that runs the task. A task never moves to another one.
func (t *Task) Scheduler() *Scheduler { return t.s }

// Action returns the action that the task was spawned with, or the action of a demon that was installed or attached.
func (t *Task) Action() Action { return t.action }

// Demon reports whether the task is a [Demon]: its action was installed or attached, not spawned.
func (t *Task) Demon() bool { return t.flags&isDemon != 0 }

// Order returns the latest shutdown request that made the policy stricter. It returns nil while nothing shuts down, and
// while this task is not to be told yet. A task that calls it in a turn that ends with Wait is expected to wait for a
// shutdown.
func (t *Task) Order() shutdown.Order {
	t.s.touch()
	t.flags |= attended
	return t.order()
}

func (t *Task) order() shutdown.Order {
	if t.s.order == nil || t.flags&last != 0 && !t.s.lastTold {
		return nil
	}
	if x, ok := t.action.(facts.Connected); ok && x.Undisturbed() {
		return nil
	}
	return t.s.order
}

// Err returns the error of the action that failed last in this turn, nil if none has. The scheduler reads it only when
// the whole task returns Failed, so a parent that can do without a child simply goes on.
func (t *Task) Err() error {
	t.s.touch()
	return t.s.err
}

// Fail sets [Task.Err] and returns Failed, so that an action can end with "return t.Fail(err)". It panics if err is
// nil.
func (t *Task) Fail(err error) Directive {
	t.s.touch()
	if err == nil {
		panic("act: Fail without an error")
	}
	t.s.err = err
	return Failed
}

// Own makes the task close c when it leaves the scheduler, before the action itself is closed. Closers are closed in
// reverse order of Own.
func (t *Task) Own(c io.Closer) {
	t.s.touch()
	x := t.more()
	x.owned = append(x.owned, c)
}

// Release undoes the latest [Task.Own] of c, so that c is not closed with the task. It reports whether the task owned c.
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

// WakeAfter arms tm to wake this task d from now. If tm is already armed, it is moved. It fires once, whatever the task
// waits for then. It is disarmed by [Timer.Stop], and when the task leaves the scheduler. WakeAfter reads the clock.
func (t *Task) WakeAfter(tm *Timer, d time.Duration) {
	t.WakeAt(tm, t.s.after(d))
}

// WakeAt is WakeAfter for a point in time on the scheduler's clock (see [Scheduler.Now]). A point that has passed is due
// in the next pass.
func (t *Task) WakeAt(tm *Timer, at time.Duration) {
	t.s.touch()
	tm.arm(t, at, nil)
}

// String returns the [Name] of the task's action, for logs.
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
		if !stop(t.timers) {
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

// closeAll closes what the task owns, the last first, then the action. It touches nothing that a Waker reads, since it
// may run in parallel with the scheduler's thread: see offload.run.
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

// Name returns the name of an action or a function in logs and in a shutdown.Cut: the result of its String method if it
// has one, for a function its name in the program, otherwise the type.
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
