package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/daimon-go/daimon/bench/queue/measure"
)

// riverQueue is River. Its Client for working is made by work, since the Config has the workers.
type riverQueue struct {
	o      Options
	pool   *pgxpool.Pool
	insert *river.Client[pgx.Tx]
}

// stderr takes River's warnings, which would be among the figures on standard output otherwise.
var stderr = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

// job is a task of River.
type job struct {
	Enqueued int64 `json:"enqueued"`
}

func (job) Kind() string { return "job" }

func openRiver(ctx context.Context, o Options) (queue, error) {
	cfg, err := pgxpool.ParseConfig(o.Database)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(o.Conns)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	q := &riverQueue{o: o, pool: pool}
	if err := q.open(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return q, nil
}

func (q *riverQueue) open(ctx context.Context) (err error) {
	driver := riverpgxv5.New(q.pool)
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: stderr})
	if err != nil {
		return err
	}
	if !q.o.Enqueue {
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return err
		}
	}
	q.insert, err = river.NewClient(driver, &river.Config{FetchCooldown: cooldown, Logger: stderr})
	return err
}

// The settings of River's own benchmark, cmd/river/riverbench, but for the number of workers: there it is 2,000.
const (
	cooldown = 2 * time.Millisecond
	poll     = 20 * time.Millisecond
	events   = 75_000 // room for the events of finished jobs; they would be dropped
)

func (q *riverQueue) enqueue(ctx context.Context, n int) error {
	if n == 1 {
		_, err := q.insert.Insert(ctx, job{measure.Clock()}, nil)
		return err
	}
	_, err := q.insert.InsertMany(ctx, jobs(n))
	return err
}

func (q *riverQueue) fill(ctx context.Context, n int) error {
	_, err := q.insert.InsertManyFast(ctx, jobs(n))
	return err
}

func jobs(n int) []river.InsertManyParams {
	all := make([]river.InsertManyParams, n)
	for i := range all {
		all[i].Args = job{measure.Clock()}
	}
	return all
}

func (q *riverQueue) work(ctx context.Context, t task) (stop func() error, err error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, j *river.Job[job]) error {
		t.do(ctx, j.Args.Enqueued)
		return nil
	}))
	cfg := &river.Config{
		FetchCooldown:     cooldown,
		FetchPollInterval: poll,
		JobTimeout:        -1, // stages have no timeout either
		Logger:            stderr,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.o.Workers}},
		Workers:           workers,
	}
	if t.claimed != nil {
		cfg.Hooks = []rivertype.Hook{fetches(t.claimed)}
	}
	c, err := river.NewClient(riverpgxv5.New(q.pool), cfg)
	if err != nil {
		return nil, err
	}
	heard, unsubscribe := c.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: events, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	var hearing sync.WaitGroup
	hearing.Go(func() {
		for range heard {
			if t.ended != nil {
				t.ended()
			}
		}
	})
	if err := c.Start(ctx); err != nil {
		unsubscribe()
		hearing.Wait()
		return nil, err
	}
	return func() error {
		err := c.StopAndCancel(context.WithoutCancel(ctx))
		unsubscribe()
		hearing.Wait()
		return err
	}, nil
}

// fetches is a hook that gets the durations of River's claims, which come with a second metric for the number of jobs.
func fetches(claimed func(time.Duration, int)) rivertype.Hook {
	var mu sync.Mutex
	var took time.Duration
	return river.HookMetricEmitFunc(func(_ context.Context, p *rivertype.HookMetricEmitParams) {
		mu.Lock()
		defer mu.Unlock()
		switch m := p.Metric.(type) {
		case *rivertype.JobGetAvailableDurationMetric:
			took = m.Duration
		case *rivertype.JobGetAvailableCountMetric:
			claimed(took, m.Count)
		}
	})
}

func (q *riverQueue) finished() string {
	return `SELECT count(*) FROM river_job WHERE state = 'completed'`
}

func (q *riverQueue) table() string { return "river_job" }

func (q *riverQueue) close() error {
	q.pool.Close()
	return nil
}
