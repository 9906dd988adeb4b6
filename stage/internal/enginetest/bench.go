// Package enginetest has benchmarks of engines and stores. They are for the stores of this repository.
package enginetest

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/store"
)

// Benchmark measures engines over the stores that open returns, on goroutines and in a Group: how many tasks of one stage
// that does nothing they finish in a second ("tasks/s"; a task is two transactions, and several tasks share the first), and
// how long after Enqueue in the same process a processor begins ("p50-µs", "p99-µs"). open registers the closing with b.
func Benchmark(b *testing.B, open func(b *testing.B) store.Store) {
	for _, in := range []struct {
		name string
		run  func(context.Context, *stage.Engine) error
	}{
		{"goroutines", func(ctx context.Context, e *stage.Engine) error { return e.Run(ctx) }},
		{"group", func(ctx context.Context, e *stage.Engine) error {
			return act.Run(ctx, act.Config{Schedulers: 1, Shutdown: shutdown.Policy{Kind: shutdown.Unbounded}}, e.Setup)
		}},
	} {
		b.Run("tasks/"+in.name, func(b *testing.B) { benchmarkTasks(b, open(b), in.run) })
		b.Run("latency/"+in.name, func(b *testing.B) { benchmarkLatency(b, open(b), in.run) })
	}
}

// benched is an engine whose tasks have one stage.
func benched(b *testing.B, s store.Store, p stage.Processor) *stage.Engine {
	e, err := stage.New(stage.Config{
		Store: s, Kinds: map[string]stage.Kind{"job": {Chain: stage.Begin("NEW").Then("DOING", "p", "DONE")}},
		Processors: map[string]stage.Processor{"p": p},
	})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func benchmarkTasks(b *testing.B, s store.Store, run func(context.Context, *stage.Engine) error) {
	ctx, stop := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(b.N))
	e := benched(b, s, func(context.Context, *store.Task) (store.Commit, error) {
		if left.Add(-1) == 0 {
			stop()
		}
		return nil, nil
	})
	for range b.N {
		if _, err := e.Enqueue(ctx, "job", nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	if err := run(ctx, e); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	open, err := s.List(context.Background(), store.Selection{Running: true}) // the last ones were interrupted
	if err != nil || len(open) > 8 {
		b.Fatal(len(open), err)
	}
	b.ReportMetric(float64(b.N-len(open))/b.Elapsed().Seconds(), "tasks/s")
}

func benchmarkLatency(b *testing.B, s store.Store, run func(context.Context, *stage.Engine) error) {
	ctx, stop := context.WithCancel(context.Background())
	begun := make(chan time.Time, 1)
	e := benched(b, s, func(context.Context, *store.Task) (store.Commit, error) {
		begun <- time.Now()
		return nil, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, e) }()
	waits := make([]time.Duration, b.N)
	for i := range waits {
		enqueued := time.Now()
		if _, err := e.Enqueue(ctx, "job", nil); err != nil {
			b.Fatal(err)
		}
		waits[i] = (<-begun).Sub(enqueued)
		time.Sleep(time.Millisecond) // so that the engine is at rest again
	}
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	slices.Sort(waits)
	for name, at := range map[string]int{"p50-µs": b.N / 2, "p99-µs": b.N * 99 / 100} {
		b.ReportMetric(float64(waits[at].Nanoseconds())/1000, name)
	}
}
