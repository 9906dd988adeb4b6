package sim

import (
	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/readiness"
)

// audit checks what would cost too much in each step.
func (w *World) audit() {
	for _, v := range w.servers {
		if v.closed {
			continue
		}
		for _, r := range v.runners {
			if err := audit.Scheduler(r.s); err != nil {
				w.Errorf("%v: %w", r, err)
			}
			readiness.Inspect(r.s, r.lost)
		}
	}
}

// lost checks that a waiting task will be woken: what it waits for is not there, or an event is still coming.
func (r *runner) lost(s readiness.State) {
	if r.at >= 0 {
		return // the scheduler is about to run
	}
	in, out, coming := r.server.kernel.level(s.FD)
	switch {
	case coming:
	case s.Dialing:
		if s.Reader && out {
			r.w.Errorf("%v: lost wake-up: a task waits for descriptor %d to be connected, and it is", r, s.FD)
		}
	case s.Reader && s.ForEnd && r.server.kernel.gone(s.FD, s.Half):
		r.w.Errorf("%v: lost wake-up: a task waits for the end of descriptor %d, which has come", r, s.FD)
	case s.Reader && !s.ForEnd && (in || s.In):
		r.w.Errorf("%v: lost wake-up: a task waits for input on descriptor %d, where there is some", r, s.FD)
	case (s.Writer || s.Queued > 0) && out:
		r.w.Errorf("%v: lost readiness: %d bytes wait for room on descriptor %d, where there is some", r, s.Queued, s.FD)
	}
}
