package act

import "time"

// Idler is what a scheduler's thread sleeps in, and where it looks for events of the operating system. A scheduler has one.
// It starts with one that only sleeps; an engine with descriptors replaces that. See [Scheduler.SetIdler].
type Idler interface {
	// Idle sleeps until an event, an Interrupt, or until atMost has passed: 0 only looks, less than 0 sets no limit. It
	// may return early for no reason. It is called on the scheduler's thread.
	Idle(atMost time.Duration)
	// Interrupt makes the current call of Idle return, or the next one if there is none. It may be called from any goroutine.
	Interrupt()
}

// Strategy wraps the Idler that a scheduler would otherwise have, to choose by configuration what happens when nothing is
// ready. The nil Strategy uses that Idler as it is: it sleeps until something happens. Package demon has others.
type Strategy func(s *Scheduler, present Idler) Idler

// idling is an Idler in a place that other goroutines read.
type idling struct{ Idler }

// SetIdler replaces the Idler by i, wrapped by Config.Idle. An engine calls it at its first use, in a set-up function or a
// turn.
func (s *Scheduler) SetIdler(i Idler) {
	s.touch()
	if strategy := s.group.cfg.Idle; strategy != nil {
		i = strategy(s, i)
	}
	s.idler.Store(&idling{i})
}
