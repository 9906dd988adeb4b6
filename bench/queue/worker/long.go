package main

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/bench/queue/measure"
)

// snapshot enqueues and works on b.Rate tasks a second, while another session has a transaction open whose snapshot keeps
// VACUUM from removing any row that has died since.
func snapshot(ctx context.Context, b *bench) (f measure.Figures, err error) {
	other, err := pgx.Connect(ctx, b.Database)
	if err != nil {
		return f, err
	}
	defer func() { err = cmp.Or(err, other.Close(context.WithoutCancel(ctx))) }()
	tx, err := other.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return f, err
	}
	if _, err := tx.Exec(ctx, "SELECT count(*) FROM "+b.q.table()); err != nil { // it has a snapshot from now on
		return f, err
	}
	var ended atomic.Int64
	var c claims
	stop, err := b.q.work(ctx, task{do: func(context.Context, int64) {}, ended: func() { ended.Add(1) }, claimed: c.note})
	if err != nil {
		return f, err
	}
	defer func() { err = cmp.Or(err, stop()) }()
	feeding, enough := context.WithCancel(ctx)
	fed := make(chan error, 1)
	go func() { fed <- b.feed(feeding) }()
	f.Samples, err = b.watch(ctx, &ended, &c)
	enough()
	return f, cmp.Or(err, <-fed)
}

// feed enqueues b.Rate tasks a second, all that are due in one call.
func (b *bench) feed(ctx context.Context) error {
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for fed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			due := int(time.Since(begin).Seconds()*float64(b.Rate)) - fed
			if due == 0 {
				continue
			}
			if err := b.q.enqueue(ctx, due); err != nil && ctx.Err() == nil {
				return err
			}
			fed += due
		}
	}
}

// heartbeats has b.Tasks tasks at work, which do nothing but wait. There are as many workers.
func heartbeats(ctx context.Context, b *bench) (f measure.Figures, err error) {
	if err := b.q.fill(ctx, b.Tasks); err != nil {
		return f, err
	}
	if err := b.settle(ctx); err != nil {
		return f, err
	}
	begun, ended := tallyOf(b.Tasks), tallyOf(b.Tasks)
	enough := make(chan struct{})
	stop, err := b.q.work(ctx, task{ended: ended.add, do: func(ctx context.Context, _ int64) {
		begun.add()
		select {
		case <-enough:
		case <-ctx.Done():
		}
	}})
	if err != nil {
		return f, err
	}
	defer func() { err = cmp.Or(err, stop()) }()
	if err := begun.wait(ctx); err != nil {
		return f, err
	}
	if f.Samples, err = b.watch(ctx, &ended.ended, new(claims)); err != nil {
		return f, err
	}
	close(enough)
	if err := ended.wait(ctx); err != nil {
		return f, err
	}
	return f, b.check(ctx, b.Tasks)
}

// claims are the durations of the claims that have found something, since the last look.
type claims struct {
	mu   sync.Mutex
	took []time.Duration
}

func (c *claims) note(took time.Duration, tasks int) {
	if tasks == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, took)
}

func (c *claims) take() (took []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took, c.took = c.took, nil
	return took
}

// counters are what the server counts.
type counters struct {
	updates, hot, dead, wal, table, indexes int64
}

func (b *bench) counters(ctx context.Context) (c counters, err error) {
	err = b.db.QueryRow(ctx, `
		SELECT n_tup_upd, n_tup_hot_upd, n_dead_tup, (pg_current_wal_insert_lsn() - '0/0')::bigint,
			pg_table_size(relid), pg_indexes_size(relid)
		FROM pg_stat_user_tables WHERE relid = $1::text::regclass`, b.q.table()).
		Scan(&c.updates, &c.hot, &c.dead, &c.wal, &c.table, &c.indexes)
	return c, err
}

// watch makes a sample every b.Every until b.Last is over.
func (b *bench) watch(ctx context.Context, ended *atomic.Int64, c *claims) (all []measure.Sample, err error) {
	begin := time.Now()
	clocks, err := measure.Now()
	if err != nil {
		return nil, err
	}
	counted, err := b.counters(ctx)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(b.Every)
	defer tick.Stop()
	for done := ended.Load(); time.Since(begin) < b.Last-b.Every/2; {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		now, err := measure.Now()
		if err != nil {
			return nil, err
		}
		count, err := b.counters(ctx)
		if err != nil {
			return nil, err
		}
		s := measure.Sample{After: time.Since(begin).Round(time.Second / 10), Dead: count.dead, Table: count.table, Indexes: count.indexes}
		each := now.Since(clocks, 1)
		second := each.Wall / float64(time.Second)
		more := ended.Load() - done
		s.Tasks, s.Busy = float64(more)/second, each.CPU()/each.Wall
		if more > 0 {
			s.CPU = each.CPU() / float64(more)
		}
		s.Updates, s.HotUpdates = float64(count.updates-counted.updates)/second, float64(count.hot-counted.hot)/second
		s.WAL = float64(count.wal-counted.wal) / second
		if took := c.take(); len(took) > 0 {
			s.Claims, s.Claim, s.SlowClaim = len(took), measure.Percentile(took, 50), measure.Percentile(took, 99)
		}
		all = append(all, s)
		clocks, counted, done = now, count, done+more
	}
	return all, nil
}
