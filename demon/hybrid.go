package demon

import (
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
)

// Hybrid is the strategy "hybrid": after a turn the thread looks without blocking until spin has passed
// without another turn, and then blocks. Under load it neither sleeps nor needs to be woken; an idle
// server is as quiet as under "interrupt". The time is that of the scheduler's clock. It panics unless
// spin is above 0.
func Hybrid(spin time.Duration) act.Strategy {
	mustBePositive("Hybrid", spin)
	return func(s *act.Scheduler, present act.Idler) act.Idler {
		return &hybrid{s: s, present: present, spin: spin, until: s.Now() + spin}
	}
}

// hybrid never looks twice in one Idle: whether a look has brought something only the scheduler knows.
// It returns, and the scheduler comes back after an empty pass if there was nothing.
type hybrid struct {
	s       *act.Scheduler
	present act.Idler
	spin    time.Duration

	turns uint64        // the scheduler's, when it last might have blocked
	until time.Duration // when to stop looking
	state atomic.Uint32 // of the thread, for Interrupt
}

// The thread goes from awake to blocking and back. Whoever interrupts leaves interrupted in either
// case, and wakes the thread only if it was blocking: while it looks, an Interrupt is one atomic
// operation and no write to a descriptor.
const (
	awake uint32 = iota
	blocking
	interrupted
)

func (h *hybrid) Idle(atMost time.Duration) {
	if atMost == 0 || h.looking() {
		h.present.Idle(0)
		return
	}
	if !h.state.CompareAndSwap(awake, blocking) { // interrupted since the last block
		atMost = 0
	}
	h.present.Idle(atMost)
	h.state.Store(awake)
}

func (h *hybrid) Interrupt() {
	if h.state.Swap(interrupted) == blocking {
		h.present.Interrupt()
	}
}

// looking tells whether there was a turn so recently that it is worth while to look. The reading of
// the clock is the pass's, made a moment ago.
func (h *hybrid) looking() bool {
	now := h.s.Now()
	if turns := hook.TurnCount(h.s); turns != h.turns {
		h.turns, h.until = turns, now+h.spin
	}
	return now < h.until
}
