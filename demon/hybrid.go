package demon

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// Hybrid returns the strategy "hybrid": after a turn the thread polls without blocking until spin has passed without
// another turn, and then sleeps in the kernel. 50 µs is usual. Use it for request-response traffic on CPUs that you can
// spare: it is as fast as [Busy] under load, and as cheap as the default when idle. The time is on the scheduler's
// clock. Hybrid panics unless spin is above 0. docs/idle.md has measurements.
func Hybrid(spin time.Duration) act.Strategy {
	mustBePositive("Hybrid", spin)
	return func(s *act.Scheduler, present facts.Idler) facts.Idler {
		return &hybrid{s: s, present: present, spin: spin, until: s.Now() + spin}
	}
}

// hybrid polls only once in an Idle: only the scheduler knows whether a poll has found something. It calls Idle again
// after an empty pass.
type hybrid struct {
	s       *act.Scheduler
	present facts.Idler
	spin    time.Duration

	turns uint64        // the scheduler's count at the latest poll
	until time.Duration // when to stop polling
	rest  facts.Rest
	state atomic.Uint32 // of the thread, for Interrupt
}

// The thread goes from awake to blocking and back. An Interrupt sets interrupted, and wakes the thread only if it was
// blocking: while the thread polls, an Interrupt writes to no descriptor.
const (
	awake uint32 = iota
	blocking
	interrupted
)

func (h *hybrid) Idle(atMost time.Duration) {
	if atMost == 0 || h.polling() {
		h.rest = facts.Polling
		h.present.Idle(0)
		return
	}
	h.rest = facts.Asleep
	if !h.state.CompareAndSwap(awake, blocking) { // interrupted since the last block
		atMost = 0
	}
	h.present.Idle(atMost)
	h.state.Store(awake)
}

// Rest implements facts.Resting.
func (h *hybrid) Rest() facts.Rest { return h.rest }

func (h *hybrid) Interrupt() {
	if h.state.Swap(interrupted) == blocking {
		h.present.Interrupt()
	}
}

// polling reports whether there was a turn within spin. The clock was read by the present pass.
func (h *hybrid) polling() bool {
	now := h.s.Now()
	if turns := h.s.Internals().TurnCount(); turns != h.turns {
		h.turns, h.until = turns, now+h.spin
	}
	return now < h.until
}
