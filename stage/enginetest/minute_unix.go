//go:build unix

package enginetest

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
)

// Minute logs the processor time that an engine with 10,000 periodic tasks takes in a minute, in which each has a tick, and a
// task of one stage that does nothing: all at once, and at different times. server returns what the database has taken, if that is
// another process.
func Minute(t *testing.T, open func(t *testing.T) stage.Store, server func() time.Duration) {
	tier.Need(t, tier.Long, "takes two minutes")
	tier.NoRace(t, "measures processor time")
	for _, row := range []struct {
		name  string
		apart time.Duration
	}{
		{"at once", 0},
		{"at different times", time.Minute / many},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := open(t)
			cfg := stage.Config{
				Store: s, Logger: zap.NewNop(), Kinds: map[string]stage.Kind{"note": {Chain: stage.Begin("NEW").Then("WRITING", "note", "WRITTEN")}},
				Provider: stage.Processors{"note": stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil })},
				Periodic: map[string]stage.Periodic{},
			}
			begin := make([]stage.Tick, many)
			for i := range begin {
				begin[i].Name = fmt.Sprint("periodic ", i)
				cfg.Periodic[begin[i].Name] = stage.Periodic{Kind: "note", Schedule: minutely(time.Duration(i) * row.apart)}
			}
			_, err := s.Tick(t.Context(), begin...)
			require.NoError(t, err)
			e, err := stage.New(cfg)
			require.NoError(t, err)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			own, its := processorTime(t), server()
			var all sync.WaitGroup
			all.Go(func() { err = e.Run(ctx) })
			all.Wait()
			own, its = processorTime(t)-own, server()-its
			require.NoError(t, err)
			n := 0
			counts, err := s.Counts(t.Context())
			require.NoError(t, err)
			for _, c := range counts {
				if c.Stage == "WRITTEN" {
					n = c.N
				}
			}
			t.Logf("%d ticks in a minute: %.2f s of this process, %.2f s of the server", n, own.Seconds(), its.Seconds())
			require.InDelta(t, many, n, many/20)
		})
	}
}

// many is how many periodic tasks there are.
const many = 10_000

// minutely has a tick each minute, that long after the full one.
type minutely time.Duration

func (m minutely) Next(t time.Time) time.Time {
	return stage.Every(time.Minute).Next(t.Add(-time.Duration(m))).Add(time.Duration(m))
}

// processorTime returns what the process has taken.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
