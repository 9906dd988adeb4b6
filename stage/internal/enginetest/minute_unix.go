//go:build unix

package enginetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/cputime"
	"github.com/daimon-go/daimon/stage"
)

// Minute measures 10,000 periodic tasks for a minute. Each has one tick, whose task has one stage that does nothing. The ticks are at
// the same time, or at different times; the tasks are of one kind, or each is of a kind of its own. Minute reports how many there
// were ("ticks"), the processor time of this process ("cpu-s"), and that of the database ("server-cpu-s"). server returns what the
// database has taken so far.
func Minute(b *testing.B, open func(b *testing.B) stage.Store, server func() time.Duration) {
	for _, row := range []struct {
		name  string
		apart time.Duration
		kinds int
	}{
		{"at once", 0, 1},
		{"at different times", time.Minute / many, 1},
		{"at once, each of a kind of its own", 0, many},
		{"at different times, each of a kind of its own", time.Minute / many, many},
	} {
		b.Run(row.name, func(b *testing.B) {
			var own, its time.Duration
			ticks := 0
			for range b.N {
				s := open(b)
				e := periodic(b, s, row.apart, row.kinds)
				ctx, stop := context.WithTimeout(b.Context(), time.Minute)
				ownBefore, itsBefore := cputime.Used(b), server()
				var all sync.WaitGroup
				all.Go(func() {
					if err := e.Run(ctx); err != nil {
						b.Error(err)
					}
				})
				all.Wait()
				stop()
				own, its = own+cputime.Used(b)-ownBefore, its+server()-itsBefore
				counts, err := s.Counts(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				for _, c := range counts {
					if c.Stage == "DONE" {
						ticks += c.N
					}
				}
			}
			b.ReportMetric(float64(ticks)/float64(b.N), "ticks")
			b.ReportMetric(own.Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(its.Seconds()/float64(b.N), "server-cpu-s")
		})
	}
}

// many is how many periodic tasks there are.
const many = 10_000

// periodic returns an engine with periodic tasks that the store knows.
func periodic(b *testing.B, s stage.Store, apart time.Duration, kinds int) *stage.Engine {
	cfg := stage.Config{
		Store: s, Logger: zap.NewNop(), Periodic: map[string]stage.Periodic{},
		Kinds: map[string]stage.Kind{},
		Provider: stage.Processors{
			"p": stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) { return nil, nil }),
		},
	}
	begin := make([]stage.Tick, many)
	for i := range begin {
		begin[i].Name = fmt.Sprint("periodic ", i)
		kind := fmt.Sprint("kind ", i%kinds)
		cfg.Kinds[kind] = stage.Kind{Chain: stage.Begin("NEW").Then("DOING", "p", "DONE")}
		cfg.Periodic[begin[i].Name] = stage.Periodic{Kind: kind, Schedule: minutely(time.Duration(i) * apart)}
	}
	if _, err := s.Tick(b.Context(), begin...); err != nil {
		b.Fatal(err)
	}
	e, err := stage.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// minutely has a tick each minute, that long after the full one.
type minutely time.Duration

func (m minutely) Next(t time.Time) time.Time {
	return stage.Every(time.Minute).Next(t.Add(-time.Duration(m))).Add(time.Duration(m))
}
