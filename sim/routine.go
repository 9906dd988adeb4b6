package sim

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"github.com/daimon-go/daimon/internal/thread"
)

// routine is a coroutine of the world, which runs while nothing else does: a script of a client, or a function that may block.
type routine struct {
	w     *World
	c     *Client // nil: a function that may block
	id    int     // of such a function
	run   func()
	next  func() (struct{}, bool) // nil before the first step
	stop  func()
	yield func(struct{}) bool
	waits string      // what a script waits for; "": nothing
	until func() bool // what a function waits for; nil: it was resumed, or is going to be
	over  bool
}

func (r *routine) String() string {
	if r.c != nil {
		return fmt.Sprintf("%v of %s", r.c, r.c.address)
	}
	return fmt.Sprintf("function %d that may block", r.id)
}

func (r *routine) number() uint64 { return numbersOfFunctions | uint64(r.id) }

// fire lets it check again what it waits for.
func (r *routine) fire() {
	if r.until = nil; !r.over {
		r.w.enable(r)
	}
}

// step runs it until it waits again.
func (r *routine) step() {
	w := r.w
	w.now += passTime
	w.disable(r)
	if r.next == nil { // not earlier: a coroutine belongs to the thread that Run is locked to
		r.next, r.stop = iter.Pull(r.play)
	}
	if r.c == nil {
		w.note(isResumed, r, 0, 0)
	}
	w.present = r
	_, more := r.next()
	if w.present = nil; !more {
		r.over = true
		w.disable(r) // its last action may have enabled it again
	}
}

// errStopped unwinds a routine that has not returned when the world ends.
var errStopped = errors.New("sim: the world has ended")

func (r *routine) play(yield func(struct{}) bool) {
	r.yield = yield
	defer func() {
		if v := recover(); v != nil && v != errStopped {
			panic(fmt.Sprintf("%v: %v\n%s", r, v, debug.Stack()))
		}
	}()
	r.run()
}

// suspend waits until fire is called.
func (r *routine) suspend() {
	if !r.yield(struct{}{}) {
		panic(errStopped)
	}
}

// Await waits until f returns true. It is for functions that may block: functions of a listener.Bridge, and handlers of
// package nethttp. The world calls f again and again, so f must change nothing.
func (w *World) Await(f func() bool) {
	for !f() {
		w.await(f)
	}
}

// await is Await that may return earlier.
func (w *World) await(until func() bool) {
	r := w.present
	if r == nil || r.c != nil || thread.ID() != w.thread {
		panic("sim: Await outside of a function that may block")
	}
	r.until = until
	if w.fault(spurious, r) {
		w.agenda.add(w.now+w.dice[network].duration(time.Microsecond, time.Millisecond), r)
	}
	r.suspend()
}

// resume finds the functions that can go on. Some of them do so at once, others a while later.
func (w *World) resume() {
	for _, r := range w.functions {
		switch {
		case r.until == nil || !r.until():
		case w.dice[schedule].below(2) == 0:
			r.fire()
		default:
			r.until = nil
			w.agenda.add(w.now+w.dice[network].duration(time.Microsecond, time.Millisecond), r)
		}
	}
}

// endRoutines stops the routines that have not returned. A function cannot wait any more, since no connection is left.
func (w *World) endRoutines() {
	for _, c := range w.clients {
		for _, s := range c.scripts {
			if s.stop != nil {
				s.stop()
			}
		}
	}
	for _, r := range slices.Clone(w.functions) {
		w.Errorf("%v has not returned", r)
		r.stop()
	}
}
