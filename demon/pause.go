package demon

import (
	"time"

	"github.com/daimon-go/daimon/act"
)

// Pause is the strategy "poll": when nothing is ready the thread pauses for d, and then looks once. Only
// a deadline or an Interrupt (a posted function, an order, a remote wake-up) cuts the pause short; an
// event of the operating system waits for its end. So many events are fetched with one look, at the
// price of up to d of delay. It panics unless d is above 0.
//
// The pause is by Go's timers, which on an idle process may take 1 ms for less. The pause demon of
// older systems was a process like others, and immortal; this one is never queued, never holds Run, and
// ends with the order that ends Run.
func Pause(d time.Duration) act.Strategy {
	mustBePositive("Pause", d)
	return func(_ *act.Scheduler, present act.Idler) act.Idler {
		timer := time.NewTimer(d)
		timer.Stop()
		return &pause{present, d, make(chan struct{}, 1), timer}
	}
}

type pause struct {
	present   act.Idler // only ever looks, so Interrupt need not reach it
	length    time.Duration
	interrupt chan struct{} // holds one: an Interrupt that nobody was waiting for is for the next pause
	timer     *time.Timer
}

func (p *pause) Idle(atMost time.Duration) {
	if atMost != 0 {
		p.sleep(atMost)
	}
	p.present.Idle(0)
}

// sleep parks a locked goroutine on a channel. That costs 3–17 µs, which a pause does not notice.
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
