package sim

import (
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
)

// audit checks what would cost too much in each step.
func (w *World) audit() {
	for _, v := range w.servers {
		if v.closed {
			continue
		}
		for _, r := range v.runners {
			if err := r.s.Internals().Audit(); err != nil {
				w.Errorf("%v: %w", r, err)
			}
			r.count()
			held := 0
			r.s.Internals().EachLocal(func(v any) {
				if e, ok := v.(engine.Audited); ok {
					e.EachState(func(s engine.State) {
						if r.checkWaiters(s); s.Gathered {
							r.w.Errorf("%v rests, and bytes that it has gathered for descriptor %d were not sent", r, s.FD)
						}
						held += s.Held
					})
					if n := e.Strays(); n != 0 {
						r.w.Errorf("%v has lost the memory of %d receives ahead", r, n)
					}
				}
			})
			if n := budget.Of(r.s).Total(); n < held {
				w.Errorf("%v: what is queued takes %d bytes, and %d are counted", r, held, n)
			}
		}
	}
}

// checkWaiters checks that a waiting task will be woken: what it waits for is not there, or an event is still coming.
func (r *runner) checkWaiters(s engine.State) {
	f := r.server.kernel.files[s.FD]
	if r.enabled() || f == nil || f.end == nil {
		return // the scheduler is about to run, or get has failed the world
	}
	e := f.end
	out := e.writable() && e.settled()
	switch {
	case f.reg != nil && (f.reg.listed || f.reg.coming > 0) || e.out.notified: // an event is coming
	case s.Dialing:
		if s.Reader && out {
			r.w.Errorf("%v: lost wake-up: a task waits for descriptor %d to be connected, and it is", r, s.FD)
		}
	case s.Reader && s.ForEnd && (e.err != 0 || e.ended && !s.Half):
		r.w.Errorf("%v: lost wake-up: a task waits for the end of descriptor %d, which has come", r, s.FD)
	case s.Reader && !s.ForEnd && (e.readable() || s.In):
		r.w.Errorf("%v: lost wake-up: a task waits for input on descriptor %d, where there is some", r, s.FD)
	case (s.Writer || s.Queued > 0) && out:
		r.w.Errorf("%v: lost readiness: %d bytes wait for room on descriptor %d, where there is some", r, s.Queued, s.FD)
	}
}
