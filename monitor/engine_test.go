package monitor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// idlingEngine is an Engine of which the scheduler calls only what an Idler has.
type idlingEngine struct {
	monitor.Engine
	waiting act.Waker
}

func (e *idlingEngine) Idle(time.Duration) { e.waiting.Wake() }
func (e *idlingEngine) Interrupt()         {}

func TestAnEngineThatIsSetIsTheIdler(t *testing.T) {
	s, e := act.New(act.Config{}), &idlingEngine{}
	monitor.SetEngine(s, e)
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if e.waiting != (act.Waker{}) {
			return act.Done
		}
		e.waiting = t.Waker()
		return act.Wait
	}))
	for range 3 {
		_, err := s.Step(1)
		require.NoError(t, err)
	}
	require.True(t, s.Finished(), "it wakes the task")
	require.NoError(t, s.Close())
}
