package act

import "time"

// Idler is where a scheduler's thread sleeps and polls the operating system for events. Each scheduler has one. The
// first one only sleeps; the engine of package monitor, which polls descriptors, replaces it. Programs choose a
// [Strategy] instead of implementing Idler.
type Idler interface {
	// Idle sleeps until an event or an Interrupt comes, or until atMost has passed: 0 polls without sleeping, less than
	// 0 sets no limit. It may return early for no reason. It is called on the scheduler's thread.
	Idle(atMost time.Duration)
	// Interrupt makes the current call of Idle return, or the next one if there is none. Any goroutine.
	Interrupt()
}

// Strategy chooses what a scheduler does when nothing is ready: sleep in the kernel, or poll. It returns the Idler to
// use, which wraps present. The nil Strategy uses present as it is, and sleeps until something happens. Package demon
// has other strategies; set one as Config.Idle. It is called on the scheduler's thread.
type Strategy func(s *Scheduler, present Idler) Idler

// idling is an Idler in a place that other goroutines read.
type idling struct{ Idler }

// SetIdler replaces the Idler with x, wrapped by Config.Idle. An engine calls it at its first use, in a set-up function
// or a turn.
func (s internals) SetIdler(x Idler) {
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
