package readiness_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/price"
	"github.com/daimon-go/daimon/internal/readiness"
)

// Each pass brings one look at the kernel and a turn for every task, 64 turns at least.
func TestMeasurePriceOfATurnWithTheEngine(t *testing.T) {
	for _, c := range []struct {
		tasks int
		most  float64
	}{{1, 15}, {64, 10}} {
		t.Run(fmt.Sprint(c.tasks), func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			s := yielding(t, c.tasks)
			price.Require(t, c.most, func(n int) {
				_, err := s.Step(n)
				require.NoError(t, err)
			})
		})
	}
}

// yielding returns a scheduler with its engine and tasks that never stop yielding.
func yielding(t testing.TB, tasks int) *act.Scheduler {
	s := act.New(act.Config{})
	t.Cleanup(func() { _ = s.Close() }) // a Cut: the tasks are still there
	require.NoError(t, readiness.Of(s).Open())
	for range tasks {
		s.Spawn(endless{})
	}
	return s
}

type endless struct{}

func (endless) Act(*act.Task) act.Directive { return act.Yield }
