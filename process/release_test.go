package process_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// held is something large: a message, an order.
type held [1 << 16]byte

func (h *held) Policy() shutdown.Policy                  { return shutdown.Policy{Time: time.Hour} }
func (h *held) Act(p *process.Self[*held]) act.Directive { return act.Wait }

// A System or a Ref that is kept when the Group is closed keeps nothing that processes have held, whichever scheduler
// they were on.
func TestAClosedSystemHoldsNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		give func(to process.Ref[*held], s *act.Scheduler, sys *process.System, h *held)
	}{
		{"a message", func(to process.Ref[*held], _ *act.Scheduler, sys *process.System, h *held) { _ = to.Send(sys, h) }},
		{"a timer", func(_ process.Ref[*held], s *act.Scheduler, sys *process.System, h *held) {
			process.Spawn(sys, process.Func(func(p *process.Self[*held]) act.Directive {
				p.After(time.Hour, h)
				return act.Wait
			}), process.Options{})
		}},
		{"an order", func(_ process.Ref[*held], s *act.Scheduler, _ *process.System, h *held) { s.Group().Shutdown(h) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, sys := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped}), process.New()
			for _, s := range g.Schedulers() {
				require.NoError(t, sys.Setup(s))
			}
			to := process.Spawn[*held](sys, &held{}, process.Options{})
			h := &held{}
			w := weak.Make(h)
			row.give(to, g.Schedulers()[0], sys, h)
			for _, s := range g.Schedulers() {
				_, _ = s.Step(1)
			}
			_ = g.Close()
			h = nil
			require.Eventually(t, func() bool {
				runtime.GC()
				return w.Value() == nil
			}, servertest.Timeout, time.Millisecond)
			runtime.KeepAlive(to)
		})
	}
}
