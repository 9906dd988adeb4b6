package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
)

// executor runs offloaded functions on the world's goroutine, at times that it draws.
type executor struct{ w *World }

func (x *executor) Execute(f func()) {
	w := x.w
	late := w.dice[network].duration(time.Microsecond, time.Millisecond)
	if w.fault(lateOffload, nil) {
		late = w.lasts(time.Millisecond, time.Minute)
	}
	w.after(late, f)
}

// Reserve returns an executor for functions that may block, as many as there are.
func (x *executor) Reserve(int) act.Executor { return blocking{x} }

// blocking is an executor for functions that may block. They are coroutines, and block by Wait, for which package
// internal/lane looks.
type blocking struct{ x *executor }

func (b blocking) Execute(f func()) {
	w := b.x.w
	b.x.Execute(func() {
		w.begun++
		c := &coroutine{w: w, id: w.begun, at: -1, f: f}
		w.coroutines = append(w.coroutines, c)
		c.step()
	})
}

func (b blocking) Wait(until func() bool) { b.x.w.await(until) }

// coroutine is a function that may block.
type coroutine struct {
	w     *World
	id    int
	f     func()
	next  func() (struct{}, bool) // nil before the first step
	stop  func()
	yield func(struct{}) bool
	until func() bool // what it waits for; nil: it was resumed, or is going to be
	over  bool
	at    int // index in World.able
}

func (c *coroutine) String() string { return fmt.Sprintf("function %d that may block", c.id) }
func (c *coroutine) number() uint64 { return numbersOfCoroutines | uint64(c.id) }
func (c *coroutine) place() *int    { return &c.at }

// fire lets it look again.
func (c *coroutine) fire() {
	if c.until = nil; !c.over {
		c.w.enable(c)
	}
}

// step resumes it.
func (c *coroutine) step() {
	w := c.w
	w.now += passTime
	w.disable(c)
	if c.next == nil {
		c.next, c.stop = iter.Pull(c.play) // not earlier: it belongs to the thread that Run is locked to
	}
	w.note(isResumed, c, 0, 0)
	w.present = c
	_, more := c.next()
	if w.present = nil; !more {
		c.over = true
		w.coroutines = slices.DeleteFunc(w.coroutines, func(d *coroutine) bool { return d == c })
	}
}

func (c *coroutine) play(yield func(struct{}) bool) {
	c.yield = yield
	defer func() {
		if v := recover(); v != nil && v != errStopped {
			panic(fmt.Sprintf("%v: %v\n%s", c, v, debug.Stack()))
		}
	}()
	c.f()
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
	c := w.present
	if c == nil || thread.ID() != w.thread {
		panic("sim: Await outside of a function that may block")
	}
	c.until = until
	if w.fault(spurious, c) {
		w.agenda.add(w.now+w.dice[network].duration(time.Microsecond, time.Millisecond), c)
	}
	if !c.yield(struct{}{}) {
		panic(errStopped)
	}
}

// resume finds the coroutines that can go on. Some of them do so at once, others a while later.
func (w *World) resume() {
	for _, c := range w.coroutines {
		switch {
		case c.until == nil || !c.until():
		case w.dice[schedule].below(2) == 0:
			c.fire()
		default:
			c.until = nil
			w.agenda.add(w.now+w.dice[network].duration(time.Microsecond, time.Millisecond), c)
		}
	}
}

// endCoroutines stops coroutines that have not returned. Nothing can wait any more, since no connection is left.
func (w *World) endCoroutines() {
	for _, c := range slices.Clone(w.coroutines) {
		w.Errorf("%v has not returned", c)
		c.stop()
	}
}
