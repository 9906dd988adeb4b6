package act_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// What went wrong in the systems that this one descends from, as far as it was the scheduler's. Each row
// is the mistake; its program would show it, and leaves what it has seen in h. Other tests go deeper.
func TestMistakesOfTheAncestors(t *testing.T) {
	for _, row := range []struct {
		mistake string
		program func(t *testing.T, s *act.Scheduler, h *history)
		want    string
	}{
		{"yielding tasks starved beside any demon", func(t *testing.T, s *act.Scheduler, h *history) {
			s.Install(&demon{act: h.script("d", 100, act.Yield)})
			s.Spawn(h.script("A", 3, act.Yield))
			_, err := s.Step(6)
			require.NoError(t, err)
			s.Shutdown(plain(shutdown.Policy{Kind: shutdown.Halting, Drop: true}))
		}, "AAAddd"},
		{"demons starved under load", func(t *testing.T, s *act.Scheduler, h *history) {
			s.Install(&demon{act: h.script("d", 1, act.Yield)})
			left := 1000
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				if left--; left == 0 {
					return h.note("A", act.Done)
				}
				return act.Yield
			}))
		}, "dA"},
		{"a wake-up before the action had said would-block was lost", func(t *testing.T, s *act.Scheduler, h *history) {
			play := h.script("A", 2, act.Wait)
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				t.Waker().Wake()
				return play(t)
			}))
		}, "AA"},
		{"a stale waker woke the task that reused the slot", func(t *testing.T, s *act.Scheduler, h *history) {
			var stale act.Waker
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				stale = t.Waker()
				return h.note("A", act.Done)
			}))
			require.NoError(t, s.Run())
			play := h.script("B", 2, act.Wait)
			var own act.Waker
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				own = t.Waker()
				return play(t)
			}))
			s.Install(&demon{act: func(*act.Task) act.Directive {
				stale.Wake()
				if len(h.String()) == len("ABddd") {
					own.Wake()
					return h.note("d", act.Done)
				}
				return h.note("d", act.Yield)
			}})
		}, "ABddddB"},
		{"a scheduler could not run twice", func(t *testing.T, s *act.Scheduler, h *history) {
			for range 2 {
				s.Spawn(h.script("A", 2, act.Yield))
				require.NoError(t, s.Run())
				h.WriteString(" ")
			}
		}, "AA AA "},
		{"a demon was immortal, so there was no orderly end", func(t *testing.T, s *act.Scheduler, h *history) {
			s.Install(&demon{
				act: func(t *act.Task) act.Directive {
					if t.Order() != nil {
						return h.note("e", act.Done)
					}
					return h.note("d", stay(t))
				},
				stop: func(*act.Task, shutdown.Order) { h.WriteString("!") },
			})
			time.AfterFunc(5*time.Millisecond, func() { s.Shutdown(plain(shutdown.Unbounded)) })
		}, "d!e"},
		{"failed items vanished silently", func(t *testing.T, s *act.Scheduler, h *history) {
			s.Spawn(act.Func(func(t *act.Task) act.Directive { return t.Fail(errors.New("lost")) }))
			s.Spawn(act.Func(func(*act.Task) act.Directive { return explode("boom") }))
		}, "(lost)(panic: boom)"},
		{"a service could not hand over its last task and end in the same turn", func(t *testing.T, s *act.Scheduler, h *history) {
			s.Install(&demon{act: func(*act.Task) act.Directive {
				s.Spawn(h.script("A", 1, act.Yield))
				return h.note("s", act.Done)
			}})
		}, "sA"},
		{"an exception in an asynchronous phase hung run for ever", func(t *testing.T, s *act.Scheduler, h *history) {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				return t.Offload(func() { panic("boom") })
			}))
		}, "(panic: boom)"},
		{"a resume before WAIT was lost", func(t *testing.T, s *act.Scheduler, h *history) {
			play := h.script("A", 2, act.Wait)
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				r, resumed := t.Waker().Remote(), make(chan struct{})
				go func() {
					r.Wake()
					close(resumed)
				}()
				<-resumed // the turn has not ended yet
				return play(t)
			}))
		}, "AA"},
		{"two phases of one tasklet could run at once", func(t *testing.T, s *act.Scheduler, h *history) {
			turns := 0
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				if turns++; turns > 1 {
					return h.note("A", act.Done)
				}
				w, inside, enough := t.Waker(), make(chan struct{}), make(chan struct{})
				eager := h.script("w", 5, act.Yield)
				s.Spawn(act.Func(func(*act.Task) act.Directive {
					<-inside
					w.Wake()
					w.Remote().Wake()
					d := eager(nil)
					if d == act.Done {
						close(enough)
					}
					return d
				}))
				return t.Offload(func() {
					close(inside)
					<-enough
				})
			}))
		}, "wwwwwA"},
	} {
		t.Run(row.mistake, func(t *testing.T) {
			s, logs := newScheduler(t, act.Config{})
			var h history
			row.program(t, s, &h)
			inTime(t, func() { _ = s.Run() })
			for _, e := range logs.All() {
				h.WriteString("(" + e.ContextMap()["error"].(string) + ")")
			}
			require.Equal(t, row.want, h.String())
		})
	}
}
