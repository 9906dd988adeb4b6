package act

import "time"

// Idler is what a scheduler's thread sleeps in, and where it looks for events of the operating system. A scheduler has one.
// It starts with one that only sleeps; an engine with descriptors replaces that.
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

// SetIdler replaces the Idler by x, wrapped by Config.Idle. An engine calls it at its first use, in a set-up function or a
// turn.
func (i *internals) SetIdler(x Idler) {
	s := i.of()
	s.touch()
	if strategy := s.group.cfg.Idle; strategy != nil {
		x = strategy(s, x)
	}
	s.idler.Store(&idling{x})
}
