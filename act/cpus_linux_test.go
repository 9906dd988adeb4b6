package act_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/internal/thread"
)

// computers are programs of one scheduler that only compute, for two seconds.
var computers = map[string]act.Config{
	"to the same CPU": {Schedulers: 1, Threads: act.Bound, CPUs: thread.CPUs()[:1]},
	"least used":      {Schedulers: 1, Threads: act.Bound},
	"not bound":       {Schedulers: 1},
}

func init() {
	for name, cfg := range computers {
		children[name] = func() {
			ctx, end := context.WithTimeout(context.Background(), 2*time.Second)
			defer end()
			cfg.Shutdown = haltAndDrop
			turns := 0
			_ = act.Run(ctx, cfg, func(s *act.Scheduler) error {
				s.Spawn(act.Func(func(*act.Task) act.Directive {
					for range 20_000 {
						turns++
					}
					return act.Yield
				}))
				return nil
			}) // the Cut is the task
			fmt.Print(turns / 20_000)
		}
	}
}

// The figures of docs/cpus.md. The second program starts when the first one has chosen.
func TestMeasureTwoProgramsThatCompute(t *testing.T) {
	tier.Measure(t, "needs two CPUs")
	sums := map[string]int{}
	for range 5 {
		for name := range computers {
			var both sync.WaitGroup
			var turns [2]int
			for i := range turns {
				both.Go(func() {
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
					said, err := runChild(t, name)
					require.NoError(t, err)
					_, err = fmt.Sscan(said, &turns[i])
					require.NoError(t, err)
				})
			}
			both.Wait()
			t.Logf("%s: %d", name, turns)
			sums[name] += turns[0] + turns[1]
		}
	}
	t.Log(sums)
	require.Greater(t, sums["least used"], sums["to the same CPU"], "on a machine that does nothing else")
}
