package demon

import (
	"fmt"
	"math"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// Every returns a demon that calls tick on the scheduler's thread every d, the first time d after the demon's first
// turn. Install it with [act.Scheduler.Install]. The ticks do not drift. If ticks were missed, because turns took long
// or the scheduler was suspended, one late tick stands for all of them, and the next is on time again. Every panics
// unless d is above 0.
//
// tick returns act.Wait or act.Yield to go on with the next tick, and act.Done or act.Failed to end the demon. A
// function that it offloads is part of its turn. The demon keeps Run from returning, and ends when shutdown begins.
func Every(d time.Duration, tick act.Func) act.Demon {
	mustBePositive("Every", d)
	if tick == nil {
		panic("demon: Every needs a function")
	}
	return &every{interval: d, tick: tick}
}

type every struct {
	interval time.Duration
	tick     act.Func
	next     time.Duration // on the scheduler's clock; 0 before the first turn
	timer    act.Timer
	told     bool
}

func (e *every) Act(t *act.Task) act.Directive {
	now := t.Scheduler().Now()
	d := act.Wait
	switch {
	case e.told:
		return act.Done
	case e.next == 0:
		e.next = after(now, e.interval)
	case e.next <= now:
		missed := (now - e.next) / e.interval
		e.next = after(e.next+missed*e.interval, e.interval)
		d = e.tick(t)
	}
	t.WakeAt(&e.timer, e.next)
	if d == act.Yield {
		d = act.Wait
	}
	return d
}

// Stop ends the demon in its next turn.
func (e *every) Stop(*act.Task, shutdown.Order) { e.told = true }

func (e *every) String() string { return fmt.Sprintf("demon.Every(%v)", e.interval) }

// after returns a+d, or the largest Duration.
func after(a, d time.Duration) time.Duration { return a + min(d, math.MaxInt64-a) }

// Stay returns a demon that only keeps [act.Scheduler.Run] from returning until shutdown. Install it on a scheduler
// whose work comes from other goroutines by Post.
func Stay() act.Demon { return &stay{} }

type stay struct{ told bool }

// Act takes its Waker and drops it: only a shutdown makes this demon ready.
func (y *stay) Act(t *act.Task) act.Directive {
	if y.told {
		return act.Done
	}
	t.Waker()
	return act.Wait
}

// Stop ends the demon in its next turn.
func (y *stay) Stop(*act.Task, shutdown.Order) { y.told = true }

func (y *stay) Describe(d *act.Description) { d.WaitsFor("shutdown") }

func (y *stay) String() string { return "demon.Stay" }
