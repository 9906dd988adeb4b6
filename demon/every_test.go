package demon_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/demon"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestEveryTicksOnAGrid(t *testing.T) {
	const tick = 10 * time.Millisecond
	for _, row := range []struct {
		name  string
		moves []time.Duration // of the clock, with turns after each
		want  string          // when there was a tick
	}{
		{"not before the first interval", []time.Duration{tick - 1}, ""},
		{"at each interval", []time.Duration{tick, tick, tick}, "10ms 20ms 30ms"},
		{"looked at often", []time.Duration{5e6, 4e6, 1e6, 1e6, 8e6, 1e6}, "10ms 20ms"},
		{"a late tick does not move the next", []time.Duration{13e6, 7e6, 9e6, 1e6}, "13ms 20ms 30ms"},
		{"missed ones come once", []time.Duration{45e6, 4e6, 1e6, tick}, "45ms 50ms 60ms"},
		{"missed up to the next one", []time.Duration{3 * tick, tick}, "30ms 40ms"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, c, logs := stepped(t)
			var ticks []string
			s.Install(demon.Stay())
			s.Install(demon.Every(tick, func(*act.Task) act.Directive {
				ticks = append(ticks, s.Now().String())
				return act.Wait
			}))
			servertest.Step(t, s)
			for _, d := range row.moves {
				c.Pass(d)
				servertest.Step(t, s)
			}
			require.Equal(t, row.want, strings.Join(ticks, " "))
			require.Zero(t, logs.Len(), "no demon is reported as waiting for nothing")
		})
	}
}

func TestEveryNeverComesAfterTheEndOfTime(t *testing.T) {
	s, c, _ := stepped(t)
	c.Pass(time.Hour)
	s.Install(demon.Every(math.MaxInt64, func(*act.Task) act.Directive { panic("ticked") }))
	servertest.Step(t, s)
	c.Pass(1000 * time.Hour)
	servertest.Step(t, s)
	require.IsType(t, &shutdown.Cut{}, s.Close(), "it is still there")
}

func TestEveryVerdict(t *testing.T) {
	for _, row := range []struct {
		name    string
		verdict func(t *act.Task, tick int) act.Directive
		ticks   int // in ten intervals
		logged  int
	}{
		{"Wait goes on", func(*act.Task, int) act.Directive { return act.Wait }, 10, 0},
		{"Yield goes on with the next tick", func(*act.Task, int) act.Directive { return act.Yield }, 10, 0},
		{"Done ends", func(_ *act.Task, tick int) act.Directive {
			if tick == 3 {
				return act.Done
			}
			return act.Wait
		}, 3, 0},
		{"Failed ends and is reported", func(t *act.Task, _ int) act.Directive { return t.Fail(errors.New("no")) }, 1, 1},
		{"a panic ends and is reported", func(*act.Task, int) act.Directive { panic("no") }, 1, 1},
		{"no verdict ends and is reported", func(*act.Task, int) act.Directive { return 0 }, 1, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, c, logs := stepped(t)
			ticks := 0
			s.Install(demon.Every(time.Second, func(t *act.Task) act.Directive {
				ticks++
				return row.verdict(t, ticks)
			}))
			servertest.Step(t, s)
			for range 10 {
				c.Pass(time.Second)
				servertest.Step(t, s)
			}
			require.Equal(t, row.ticks, ticks)
			require.Equal(t, row.logged, logs.Len())
		})
	}
}

func TestEveryMayOffload(t *testing.T) {
	s, c, _ := stepped(t)
	ticks, worked := 0, make(chan bool)
	s.Install(demon.Every(time.Second, func(t *act.Task) act.Directive {
		ticks++
		return t.Offload(func() { worked <- true })
	}))
	servertest.Step(t, s)
	c.Pass(time.Second)
	servertest.Step(t, s)
	c.Pass(3 * time.Second)
	servertest.Step(t, s)
	require.Equal(t, 1, ticks, "the function has not returned")
	<-worked
	require.Eventually(t, func() bool { servertest.Step(t, s); return ticks == 2 }, servertest.Timeout, time.Millisecond)
	c.Pass(time.Second - 1)
	servertest.Step(t, s)
	require.Equal(t, 2, ticks, "what was missed meanwhile came once")
	<-worked
}

func TestEveryHoldsRunUntilAnOrder(t *testing.T) {
	for _, policy := range []shutdown.Policy{{Kind: shutdown.Unbounded}, {Turns: 1}} {
		s, _, _ := stepped(t)
		s.Install(demon.Every(time.Second, func(*act.Task) act.Directive { panic("ticked") }))
		servertest.Step(t, s)
		require.False(t, s.Finished())
		s.Shutdown(policy)
		require.NoError(t, s.Run(), "nothing was left")
	}
}

func TestEverySuspendedGoesOnWithOneTick(t *testing.T) {
	s, c, _ := stepped(t)
	ticks := 0
	s.Install(demon.Every(time.Second, func(*act.Task) act.Directive { ticks++; return act.Wait }))
	servertest.Step(t, s)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Suspend})
	_, err := s.Step(1)
	require.IsType(t, &shutdown.Cut{}, err)
	c.Pass(time.Hour + time.Second/2)
	servertest.Step(t, s)
	require.Equal(t, 1, ticks)
	c.Pass(time.Second / 2)
	servertest.Step(t, s)
	require.Equal(t, 2, ticks)
}

func TestWrongUseSaysSo(t *testing.T) {
	nothing := func(*act.Task) act.Directive { return act.Wait }
	for name, f := range map[string]func(){
		"Every needs a time above 0, not 0s":     func() { demon.Every(0, nothing) },
		"Every needs a function":                 func() { demon.Every(time.Second, nil) },
		"Pause needs a time above 0, not -1ns":   func() { demon.Pause(-1) },
		"Hybrid needs a time above 0, not -1m0s": func() { demon.Hybrid(-time.Minute) },
	} {
		require.PanicsWithValue(t, fmt.Sprintf("demon: %s", name), f)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepped returns a scheduler on a clock of the test's, and what it logs.
func stepped(t *testing.T) (*act.Scheduler, *servertest.Clock, *observer.ObservedLogs) {
	core, logs := observer.New(zap.WarnLevel)
	c := &servertest.Clock{}
	s := act.New(act.Config{Clock: c, Logger: zap.New(core)})
	t.Cleanup(func() { _ = s.Close() })
	return s, c, logs
}

// runElsewhere runs s on another goroutine until the test ends or is told.
func runElsewhere(t *testing.T, s *act.Scheduler) (ended <-chan error) {
	t.Helper()
	result := make(chan error, 1)
	go func() { result <- s.Run() }()
	t.Cleanup(func() { s.Shutdown(servertest.Cut) })
	return result
}
