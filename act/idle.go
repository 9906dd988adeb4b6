package act

import (
	"time"

	"github.com/daimon-go/daimon/internal/facts"
)

// Strategy chooses what a scheduler does when nothing is ready: sleep in the kernel, or poll. Package demon has
// strategies; set one as Config.Idle. The nil Strategy sleeps until something happens. It is called on the scheduler's
// thread, with what sleeps and polls at present, and returns what does so from then on.
type Strategy func(s *Scheduler, present facts.Idler) facts.Idler

// idling is an Idler in a place that other goroutines read.
type idling struct{ facts.Idler }

// SetIdler replaces the Idler with x, wrapped by Config.Idle. An engine calls it at its first use, in a set-up function
// or a turn.
func (s internals) SetIdler(x facts.Idler) {
	s.touch()
	if strategy := s.group.cfg.Idle; strategy != nil {
		x = strategy(s.Scheduler, x)
	}
	s.idler.Store(&idling{x})
}

// parker is the Idler of a scheduler without descriptors: it only sleeps. To park a locked goroutine on a channel costs
// 3–17 µs.
type parker struct {
	interrupt chan struct{} // of capacity 1: an Interrupt outside of a sleep ends the next one
	timer     *time.Timer
}

func newParker() *parker {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &parker{make(chan struct{}, 1), t}
}

func (p *parker) Idle(atMost time.Duration) {
	switch {
	case atMost == 0:
	case atMost < 0:
		<-p.interrupt
	default:
		p.timer.Reset(atMost)
		select {
		case <-p.interrupt:
		case <-p.timer.C:
		}
		p.timer.Stop()
	}
}

func (p *parker) Interrupt() {
	select {
	case p.interrupt <- struct{}{}:
	default: // one is enough
	}
}
