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
