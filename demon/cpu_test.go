//go:build unix

package demon_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/shutdown"
)

func TestMeasureIdleCPU(t *testing.T) {
	tier.Measure(t, "what an idle scheduler uses of a CPU")
	const in = 200 * time.Millisecond
	for name, most := range map[string]float64{"interrupt": 0.1, "poll": 0.4, "hybrid": 0.1} {
		t.Run(name, func(t *testing.T) {
			s := act.New(act.Config{Idle: servertest.Strategies()[name]})
			defer s.Close()
			s.Install(demon.Stay())
			ended := runElsewhere(t, s)
			price.AtMost(t, "of a CPU", most, func() float64 {
				before := used(t)
				time.Sleep(in)
				return float64(used(t)-before) / float64(in)
			})
			s.Shutdown(shutdown.Policy{})
			require.NoError(t, servertest.Receive(t, ended))
		})
	}
}

// used is the processor time of this process so far.
func used(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
