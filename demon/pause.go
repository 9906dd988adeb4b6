package demon

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// Pause is the strategy "poll": when nothing is ready the thread pauses for d and then looks once. Only a deadline or an
// Interrupt (a posted function, an order, a remote wake-up) ends the pause early; an event of the operating system waits
// for its end. So one look fetches many events, which are up to d late. Pause panics unless d is above 0.
//
// The pause is by Go's timers, which in an idle process may take 1 ms for less.
func Pause(d time.Duration) act.Strategy {
	mustBePositive("Pause", d)
	return func(s *act.Scheduler, present act.Idler) act.Idler {
		return &pause{s.Internals().NewParker(), present, d}
	}
}

type pause struct {
	act.Idler           // it only sleeps; an Interrupt outside of a pause ends the next one
	present   act.Idler // it only looks, so Interrupt need not reach it
	length    time.Duration
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
