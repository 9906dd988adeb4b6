package demon

import (
	"time"

	"github.com/daimon-go/daimon/act"
)

// Pause is the strategy "poll": when nothing is ready the thread pauses for d and then looks once. Only a deadline or an
// Interrupt (a posted function, an order, a remote wake-up) ends the pause early; an event of the operating system waits
// for its end. So one look fetches many events, which are up to d late. Pause panics unless d is above 0.
//
// The pause is by Go's timers, which in an idle process may take 1 ms for less.
func Pause(d time.Duration) act.Strategy {
	mustBePositive("Pause", d)
	return func(_ *act.Scheduler, present act.Idler) act.Idler {
		timer := time.NewTimer(d)
		timer.Stop()
		return &pause{present, d, make(chan struct{}, 1), timer}
	}
}

type pause struct {
	present   act.Idler // it only looks, so Interrupt need not reach it
	length    time.Duration
	interrupt chan struct{} // of capacity 1: an Interrupt outside of a pause ends the next one
	timer     *time.Timer
}

func (p *pause) Idle(atMost time.Duration) {
	if atMost != 0 {
		p.sleep(atMost)
	}
	p.present.Idle(0)
}

// sleep parks a locked goroutine on a channel, which costs 3–17 µs.
func (p *pause) sleep(atMost time.Duration) {
	d := p.length
	if atMost > 0 {
		d = min(d, atMost)
	}
	p.timer.Reset(d)
	select {
	case <-p.interrupt:
	case <-p.timer.C:
	}
	p.timer.Stop()
}

func (p *pause) Interrupt() {
	select {
	case p.interrupt <- struct{}{}:
	default: // one is enough
	}
}
