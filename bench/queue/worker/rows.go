package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/bench/queue/measure"
)

// rows are what can be measured.
var rows = map[string]func(context.Context, *bench) (measure.Figures, error){
	"drain":       drain,
	"steady":      steady,
	"start":       func(ctx context.Context, b *bench) (measure.Figures, error) { return start(ctx, b, b.enqueue) },
	"start-apart": func(ctx context.Context, b *bench) (measure.Figures, error) { return start(ctx, b, b.enqueueApart) },
	"bulk":        bulk,
	"snapshot":    snapshot,
	"heartbeats":  heartbeats,
}

// bench is a run.
type bench struct {
	Options
	q  queue
	db *pgx.Conn // in addition to the queue's connections, for the statistics
}

func (o Options) bench(ctx context.Context, q queue) (*bench, error) {
	db, err := pgx.Connect(ctx, o.Database)
	return &bench{o, q, db}, err
}

// silence is how long nothing may finish.
const silence = time.Minute

// tally counts the tasks that have ended, up to n.
type tally struct {
	n     int64
	ended atomic.Int64
	all   chan struct{}
}

func tallyOf(n int) *tally { return &tally{n: int64(n), all: make(chan struct{})} }

func (t *tally) add() {
	if t.ended.Add(1) == t.n {
		close(t.all)
	}
}

// wait returns when all have ended.
func (t *tally) wait(ctx context.Context) error {
	for before := int64(-1); ; {
		select {
		case <-t.all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(silence):
		}
		now := t.ended.Load()
		if now == before {
			return fmt.Errorf("no task has ended for %v, after %d of %d", silence, now, t.n)
		}
		before = now
	}
}

// check compares the number of finished tasks in the database with want.
func (b *bench) check(ctx context.Context, want int) error {
	var n int
	if err := b.db.QueryRow(ctx, b.q.finished()).Scan(&n); err != nil {
		return err
	}
	if n != want {
		return fmt.Errorf("%d tasks have finished, but %d in the database", want, n)
	}
	return nil
}

// settle gives the planner its statistics, and keeps writes of what was before out of the measurement.
func (b *bench) settle(ctx context.Context) error {
	for _, sql := range []string{"VACUUM ANALYZE " + b.q.table(), "CHECKPOINT"} {
		if _, err := b.db.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// drain works on tasks that were enqueued before.
func drain(ctx context.Context, b *bench) (f measure.Figures, err error) {
	if err := b.q.fill(ctx, b.Tasks); err != nil {
		return f, err
	}
	return b.finish(ctx, func() error { return nil })
}

// steady enqueues tasks one by one, each from one of some goroutines, while it works on them.
func steady(ctx context.Context, b *bench) (measure.Figures, error) {
	return b.finish(ctx, func() error {
		var left atomic.Int64
		left.Store(int64(b.Tasks))
		failed := make([]error, enqueuers)
		var all sync.WaitGroup
		for i := range failed {
			all.Go(func() {
				for left.Add(-1) >= 0 && failed[i] == nil {
					failed[i] = b.q.enqueue(ctx, 1)
				}
			})
		}
		all.Wait()
		for _, err := range failed {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// enqueuers are the goroutines of steady.
const enqueuers = 8

// finish measures the work on b.Tasks tasks, beside during.
func (b *bench) finish(ctx context.Context, during func() error) (f measure.Figures, err error) {
	if err := b.settle(ctx); err != nil {
		return f, err
	}
	t := tallyOf(b.Tasks)
	begin, err := measure.Now()
	if err != nil {
		return f, err
	}
	stop, err := b.q.work(ctx, task{do: func(context.Context, int64) {}, ended: t.add})
	if err != nil {
		return f, err
	}
	if err = during(); err == nil {
		err = t.wait(ctx)
	}
	if err != nil {
		_ = stop() // the first error is the cause
		return f, err
	}
	end, err := measure.Now()
	if err != nil {
		return f, err
	}
	if err := stop(); err != nil {
		return f, err
	}
	return end.Since(begin, b.Tasks), b.check(ctx, b.Tasks)
}

// bulk measures calls that enqueue b.Tasks tasks each, while nothing works.
func bulk(ctx context.Context, b *bench) (f measure.Figures, err error) {
	var begin measure.Moment
	for lap := range laps + 1 {
		if lap == 1 { // the first has warmed up
			if err := b.settle(ctx); err != nil {
				return f, err
			}
			if begin, err = measure.Now(); err != nil {
				return f, err
			}
		}
		if err := b.q.fill(ctx, b.Tasks); err != nil {
			return f, err
		}
	}
	end, err := measure.Now()
	return end.Since(begin, laps*b.Tasks), err
}

// laps are the calls of bulk.
const laps = 5

// start measures how long it takes from enqueue, of b.Tasks tasks at a low rate, to their begin.
func start(ctx context.Context, b *bench, enqueue func(context.Context) error) (f measure.Figures, err error) {
	var mu sync.Mutex
	var waits []time.Duration
	t := tallyOf(b.Tasks)
	stop, err := b.q.work(ctx, task{ended: t.add, do: func(_ context.Context, enqueued int64) {
		waited := time.Duration(measure.Clock() - enqueued)
		mu.Lock()
		defer mu.Unlock()
		waits = append(waits, waited)
	}})
	if err != nil {
		return f, err
	}
	begin, err := measure.Now()
	if err == nil {
		err = enqueue(ctx)
	}
	if err == nil {
		err = t.wait(ctx)
	}
	end, late := measure.Now()
	if err = cmp.Or(err, late, stop()); err != nil {
		return f, err
	}
	waits = waits[len(waits)/10:] // the first ones warm up
	f = end.Since(begin, b.Tasks)
	f.Median, f.P99 = measure.Percentile(waits, 50), measure.Percentile(waits, 99)
	return f, b.check(ctx, b.Tasks)
}

// enqueue adds b.Tasks tasks, b.Rate a second on average. The gaps vary, since even ones would fall into step with polls.
func (b *bench) enqueue(ctx context.Context) error {
	dice := rand.New(rand.NewPCG(1, 2))
	for range b.Tasks {
		gap := float64(time.Second) / float64(b.Rate) * (0.5 + dice.Float64())
		time.Sleep(time.Duration(gap))
		if err := b.q.enqueue(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

// enqueueApart is enqueue in another process.
func (b *bench) enqueueApart(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "-enqueue", "-queue", b.Queue, "-row", b.Row, "-db", b.Database,
		"-tasks", strconv.Itoa(b.Tasks), "-rate", strconv.Itoa(b.Rate), "-workers", "1", "-conns", strconv.Itoa(b.Conns))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
