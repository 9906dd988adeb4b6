//go:build unix

package demon_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/cputime"
	"github.com/daimon-go/daimon/internal/tier"
)

// loopCPU is what a loop of so long gets of a CPU: less than one on a machine that does other things too.
func loopCPU(t *testing.T, in time.Duration) float64 {
	before := cputime.Used(t)
	for start := time.Now(); time.Since(start) < in; {
	}
	return float64(cputime.Used(t)-before) / float64(in)
}

func TestIdleCPU(t *testing.T) {
	tier.Need(t, tier.Full, "measures CPU time")
	const in = 200 * time.Millisecond
	for _, row := range []struct {
		name     string
		min, max float64 // of a CPU; min of what a loop gets
	}{
		{"interrupt", 0, 0.1},
		{"poll", 0, 0.4},
		{"hybrid", 0, 0.1},
		{"busy", 0.2, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			idle, err := demon.ParseStrategy(row.name)
			require.NoError(t, err)
			var used, least float64
			for range 5 { // the collector, or a busy machine, may spoil some
				least = row.min * loopCPU(t, in)
				before := cputime.Used(t)
				passes(t, idle, in)
				used = float64(cputime.Used(t)-before) / float64(in)
				t.Logf("%s: %.1f %% of a CPU", row.name, 100*used)
				if least <= used && used <= row.max {
					break
				}
			}
			require.GreaterOrEqual(t, used, least)
			require.LessOrEqual(t, used, row.max)
		})
	}
}
