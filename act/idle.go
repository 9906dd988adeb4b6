package act

import "time"

// Idler is where a scheduler's thread looks for what happens outside, and where it sleeps. A scheduler
// has one; all interruptions converge on it. An engine with descriptors replaces the plain one that a
// scheduler starts with.
type Idler interface {
	// Idle returns at the latest after atMost; 0 only looks, less than 0 sets no limit. It returns early
	// on any event, and may return early for none. It is called on the scheduler's thread.
	Idle(atMost time.Duration)
	// Interrupt makes the Idle under way return, or the next one if there is none. It may be called from
	// any goroutine.
	Interrupt()
}

// Strategy makes an Idler of the scheduler's present one: what to do when nothing is ready is a matter
// of configuration. The nil Strategy uses the present one as it is: sleep until something happens.
// Package demon has others.
type Strategy func(s *Scheduler, present Idler) Idler

// idling is an Idler in a place that other goroutines read.
type idling struct{ Idler }

// SetIdler replaces the present Idler, with Config.Idle around the new one. An engine calls it on its
// scheduler's first use, in a set-up function or a turn.
func (s *Scheduler) SetIdler(i Idler) {
	s.touch()
	if strategy := s.group.cfg.Idle; strategy != nil {
		i = strategy(s, i)
	}
	s.idler.Store(&idling{i})
}

// parker is the Idler of a scheduler without descriptors.
type parker struct {
	interrupt chan struct{}
	timer     *time.Timer
}

// newParker returns an Idler that only sleeps.
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
