package summary_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/summary"
)

var line = summary.New(func(log *zap.Logger, n int) { log.Info("happened", zap.Int("times", n)) })

// late is what happens while its scheduler is closed.
type late struct{ s *act.Scheduler }

func (l late) Close() error {
	line.Add(l.s, func(n *int) { *n++ })
	return nil
}

var lates = act.NewLocal(func(s *act.Scheduler) late { return late{s} })

// What was broken: a line that was begun on a closed scheduler was not written, and no other of that Group after it.
func TestAClosedSchedulerBeginsNoLine(t *testing.T) {
	now := clock(time.Hour)
	core, logs := observer.New(zap.InfoLevel)
	g := act.NewGroup(act.Config{Schedulers: 3, Threads: act.Stepped, Clock: &now, Logger: zap.New(core)})
	happens := func(s *act.Scheduler) {
		line.Add(s, func(*int) {})
		now += clock(time.Second)
		s.Internals().KeepRunning(1)
		_, err := s.Step(1)
		require.NoError(t, err)
		s.Internals().KeepRunning(-1)
	}
	all := g.Schedulers()
	lates.Get(all[0])
	happens(all[0])
	lates.Get(all[1]) // has begun no line before
	happens(all[2])
	lates.Get(all[2]) // closed before what writes the line
	logs.TakeAll()
	require.NoError(t, g.Close())
	written := logs.FilterMessage("happened").All()
	require.Len(t, written, 1)
	require.EqualValues(t, 1, written[0].ContextMap()["times"])
}

type clock time.Duration

func (c *clock) Monotonic() time.Duration { return time.Duration(*c) }
func (c *clock) Wall() time.Time          { return time.Time{} }

// What was broken: lines that said "once in a second" came from each scheduler.
func TestALineIsOfAllSchedulersOfAGroup(t *testing.T) {
	now := clock(time.Hour)
	core, logs := observer.New(zap.InfoLevel)
	group := func() *act.Group {
		g := act.NewGroup(act.Config{Schedulers: 3, Threads: act.Stepped, Clock: &now, Logger: zap.New(core)})
		for _, s := range g.Schedulers() {
			s.Internals().KeepRunning(1) // or it ends
		}
		return g
	}
	g, other := group(), group()
	happens := func(g *act.Group, times int) {
		for n := range times {
			s := g.Schedulers()[n%3]
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				line.Add(s, func(n *int) { *n++ })
				return act.Done
			}))
			_, err := s.Step(2)
			require.NoError(t, err)
		}
	}
	pass := func(d time.Duration) (times []int64) {
		now += clock(d)
		for _, s := range append(g.Schedulers(), other.Schedulers()...) {
			_, err := s.Step(1)
			require.NoError(t, err)
		}
		for _, entry := range logs.TakeAll() {
			times = append(times, entry.ContextMap()["times"].(int64))
		}
		return times
	}
	happens(g, 7)
	happens(other, 2)
	require.Empty(t, pass(time.Second-1))
	require.Equal(t, []int64{7, 2}, pass(1))
	require.Empty(t, pass(time.Hour))
	happens(g, 4)
	for _, s := range g.Schedulers() {
		s.Internals().KeepRunning(-1)
	}
	require.NoError(t, g.Close())
	require.Equal(t, 1, logs.Len(), "what was begun when it is closed")
	for _, s := range other.Schedulers() {
		s.Internals().KeepRunning(-1)
	}
	require.NoError(t, other.Close())
}
