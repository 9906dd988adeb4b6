package demon

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
)

// Hybrid is the strategy "hybrid": after a turn the thread looks without blocking until spin has passed without another
// turn, and then blocks. Under load it neither sleeps nor has to be woken; an idle server costs no more than under
// "interrupt". The time is that of the scheduler's clock. Hybrid panics unless spin is above 0.
func Hybrid(spin time.Duration) act.Strategy {
	mustBePositive("Hybrid", spin)
	return func(s *act.Scheduler, present act.Idler) act.Idler {
		return &hybrid{s: s, present: present, spin: spin, until: s.Now() + spin}
	}
}

// hybrid looks only once in an Idle: only the scheduler knows whether a look has found something. It calls Idle again after
// an empty pass.
type hybrid struct {
	s       *act.Scheduler
	present act.Idler
	spin    time.Duration

	turns uint64        // the scheduler's count when it last looked
	until time.Duration // when to stop looking
	rest  facts.Rest
	state atomic.Uint32 // of the thread, for Interrupt
}

// The thread goes from awake to blocking and back. An Interrupt sets interrupted in either case, and wakes the thread only
// if it was blocking: while it looks, an Interrupt is one atomic operation and no write to a descriptor.
const (
	awake uint32 = iota
	blocking
	interrupted
)

func (h *hybrid) Idle(atMost time.Duration) {
	if atMost == 0 || h.looking() {
		h.rest = facts.Looking
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

// looking reports whether there was a turn within spin. The clock was read by the pass, a moment ago.
func (h *hybrid) looking() bool {
	now := h.s.Now()
	if turns := h.s.Internals().TurnCount(); turns != h.turns {
		h.turns, h.until = turns, now+h.spin
	}
	return now < h.until
}
