package demon

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// Pause returns the strategy "poll": when nothing is ready, the thread sleeps for d and then polls the kernel once. 1
// ms is usual. It has the fewest wake-ups at high rates, since one poll fetches many events, which are up to d late.
// Only a deadline or an Interrupt (a posted function, a shutdown request, a remote wake-up) ends the sleep early;
// events of the kernel wait. Pause panics unless d is above 0.
//
// The thread sleeps by Go's timers, which in an idle program may take 1 ms for a shorter time.
func Pause(d time.Duration) act.Strategy {
	mustBePositive("Pause", d)
	return func(s *act.Scheduler, present facts.Idler) facts.Idler {
		return &pause{s.Internals().NewParker(), present, d}
	}
}

type pause struct {
	facts.Idler             // it only sleeps; an Interrupt outside of a pause ends the next one
	present     facts.Idler // it only polls, so Interrupt need not reach it
	length      time.Duration
}

// Rest implements facts.Resting.
func (p *pause) Rest() facts.Rest { return facts.Pausing }

func (p *pause) Idle(atMost time.Duration) {
	if atMost < 0 || atMost > p.length {
		atMost = p.length
	}
	p.Idler.Idle(atMost)
	p.present.Idle(0)
}

func mustBePositive(what string, d time.Duration) {
	if d <= 0 {
		panic(fmt.Sprintf("demon: %s needs a time above 0, not %v", what, d))
	}
}

// Busy returns the strategy "busy": the thread never sleeps, it polls again and again. It uses a whole CPU for each
// scheduler even if there is nothing to do. It is meant for hardware that is dedicated to the program, with a spare CPU
// for Go's garbage collector. Set it as [act.Config].Idle.
func Busy() act.Strategy {
	return func(_ *act.Scheduler, present facts.Idler) facts.Idler { return busy{present} }
}

type busy struct{ present facts.Idler }

func (b busy) Idle(time.Duration) { b.present.Idle(0) }

// Rest implements facts.Resting.
func (busy) Rest() facts.Rest { return facts.Polling }

// Interrupt need not wake anything: every Idle returns at once.
func (busy) Interrupt() {}
