package act_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
)

// held is something large that is given to a scheduler.
type held [1 << 16]byte

func (h *held) TurnEnd()                       {}
func (h *held) Idle(time.Duration)             {}
func (h *held) Interrupt()                     {}
func (h *held) Policy() shutdown.Policy        { return shutdown.Policy{Time: time.Hour} }
func (h *held) Act(*act.Task) act.Directive    { return act.Wait }
func (h *held) Stop(*act.Task, shutdown.Order) {}
func (h *held) Close() error                   { return nil }

// due is called for a timer. It panics.
type due struct{ *held }

func (d due) Expire() { panic(d.held) }

var heldBy = act.NewLocal(func(*act.Scheduler) *[]*held { return &[]*held{} })

// A Group that is kept when it is closed, as by a waker, keeps nothing that its actions and services have held.
func TestAClosedGroupHoldsNothing(t *testing.T) {
	release := make(chan struct{})
	close(release)
	for _, row := range []struct {
		name string
		give func(s *act.Scheduler, h *held)
	}{
		{"a posted function", func(s *act.Scheduler, h *held) {
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				_ = s.Post(func(*act.Scheduler) { runtime.KeepAlive(h) })
				return act.Done
			}))
		}},
		{"a timer", func(s *act.Scheduler, h *held) { s.CallAt(&act.Timer{}, time.Hour, due{h}) }},
		{"a timer that has panicked", func(s *act.Scheduler, h *held) { s.Install(&held{}); s.CallAt(&act.Timer{}, 0, due{h}) }},
		{"a Local", func(s *act.Scheduler, h *held) { *heldBy.Get(s) = []*held{h} }},
		{"a Local, and a function that returns later", func(s *act.Scheduler, h *held) {
			*heldBy.Get(s) = []*held{h}
			release = make(chan struct{})
			s.Spawn(act.Func(func(t *act.Task) act.Directive { return t.Offload(func() { <-release }) }))
		}},
		{"the end of a turn", func(s *act.Scheduler, h *held) { s.Internals().AtTurnEnd(h) }},
		{"an order", func(s *act.Scheduler, h *held) { s.Attach(&held{}); s.Install(&held{}); s.Shutdown(h) }},
		{"an Idler", func(s *act.Scheduler, h *held) { s.Internals().SetIdler(h) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, h := act.New(act.Config{Logger: zap.NewNop()}), &held{}
			w := weak.Make(h)
			row.give(s, h)
			_, _ = s.Step(1)
			_ = s.Close()
			select {
			case <-release:
			default:
				runtime.GC()
				require.NotNil(t, w.Value(), "the function may need it")
				close(release)
			}
			h = nil
			require.Eventually(t, func() bool {
				runtime.GC()
				return w.Value() == nil
			}, servertest.Timeout, time.Millisecond)
			runtime.KeepAlive(s)
		})
	}
}
