package main

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daimon-go/daimon/bench/queue/measure"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// daimonQueue is an Engine on goroutines, over the store of stage/postgres.
type daimonQueue struct {
	o      Options
	store  *postgres.Store
	engine *stage.Engine // enqueues; the one of work works, if there is one
}

func openDaimon(ctx context.Context, o Options) (queue, error) {
	cfg, err := pgxpool.ParseConfig(o.Database)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(o.Conns)
	s, err := postgres.Open(ctx, postgres.Config{Pool: cfg})
	if err != nil {
		return nil, err
	}
	q := &daimonQueue{o: o, store: s}
	if q.engine, err = q.newEngine(task{}); err != nil {
		_ = s.Close() // the first error is the cause
		return nil, err
	}
	return q, nil
}

func (q *daimonQueue) newEngine(t task) (*stage.Engine, error) {
	cfg := stage.Config{
		Store: q.store,
		Kinds: map[string]stage.Kind{"job": {Chain: stage.Begin("NEW").Then("DOING", "do", "DONE")}},
		Processors: map[string]stage.Processor{"do": func(ctx context.Context, s *store.Task) (store.Commit, error) {
			t.do(ctx, int64(binary.LittleEndian.Uint64(s.Data)))
			return nil, nil
		}},
		Workers: q.o.Workers,
	}
	if t.claimed != nil {
		cfg.Store = timed{q.store, t.claimed}
	}
	if t.ended != nil {
		cfg.OnEnd = func(store.Task) { t.ended() }
	}
	return stage.New(cfg)
}

// timed is the store, with the durations of claims.
type timed struct {
	*postgres.Store
	claimed func(time.Duration, int)
}

func (s timed) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	begin := time.Now()
	tasks, err := s.Store.Claim(ctx, c)
	s.claimed(time.Since(begin), len(tasks))
	return tasks, err
}

func (q *daimonQueue) enqueue(ctx context.Context, n int) error {
	tasks := make([]store.NewTask, n)
	for i := range tasks {
		var err error
		if tasks[i], err = q.engine.NewTask("job", binary.LittleEndian.AppendUint64(nil, uint64(measure.Clock()))); err != nil {
			return err
		}
	}
	_, err := q.engine.EnqueueAll(ctx, tasks...)
	return err
}

func (q *daimonQueue) fill(ctx context.Context, n int) error { return q.enqueue(ctx, n) }

func (q *daimonQueue) work(ctx context.Context, t task) (stop func() error, err error) {
	if q.engine, err = q.newEngine(t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.engine.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func (q *daimonQueue) finished() string {
	return `SELECT count(*) FROM daimon.task WHERE stage = 'DONE'`
}

func (q *daimonQueue) table() string { return "daimon.task" }

func (q *daimonQueue) close() error { return q.store.Close() }
