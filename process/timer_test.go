package process_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/process"
)

// It counts from the call of After, and not from the beginning of the turn.
func TestATimerIsNeverEarly(t *testing.T) {
	for _, d := range []time.Duration{1, time.Millisecond - 1, time.Minute + 1, 25 * time.Hour} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 2)
			x.later(time.Hour)
			expired := 0
			x.do(x.spawn(process.Options{}), func(p *jobSelf) {
				x.clock.Pass(time.Second) // the turn takes long
				p.After(d, func(*jobSelf) { expired++ })
			})
			x.later(d - 1)
			require.Zero(t, expired)
			x.later(1)
			require.Equal(t, 1, expired)
			x.later(1000 * time.Hour)
			require.Equal(t, 1, expired, "once")
		})
	}
}

func TestTimersThatAreDueAtOnceOrNever(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "turn timer", -1: "turn timer", math.MinInt64: "turn timer", math.MaxInt64: "turn", math.MaxInt64 - 1: "turn",
	} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 1)
			x.later(time.Hour)
			log := ""
			x.do(x.spawn(process.Options{}), func(p *jobSelf) {
				p.After(d, func(*jobSelf) { log += " timer" })
				log += "turn" // the timer sends a message; it calls nothing
			})
			x.later(1000 * time.Hour)
			require.Equal(t, want, log)
		})
	}
}

func TestCancelOfATimer(t *testing.T) {
	for _, there := range []int{0, 1} {
		t.Run([]string{"where it was set", "on the other scheduler"}[there], func(t *testing.T) {
			x := newStepped(t, 2)
			ref := x.spawn(process.Options{})
			var a, expires process.Operation
			expired := 0
			x.on(0, ref, func(p *jobSelf) {
				a = p.After(time.Second, func(*jobSelf) { t.Error("it was stopped") })
				expires = p.After(time.Second, func(*jobSelf) { expired++ })
			})
			x.on(there, ref, func(*jobSelf) {
				require.True(t, a.Cancel())
				require.False(t, a.Cancel(), "a second call")
			})
			x.later(time.Second)
			require.Equal(t, 1, expired)
			x.on(there, ref, func(*jobSelf) { require.False(t, expires.Cancel(), "it has expired") })
		})
	}
}
