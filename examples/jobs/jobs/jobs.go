// Package jobs is a queue of background work, and the page on which people see it.
//
//	browser ──▶ site.go, events.go ──▶ board.go: one look at the store for all viewers ─┐
//	curl ─────▶ site.go: add, suspend, resume, retry, cancel, pause ────────────────────┼──▶ Store
//	            work.go: the processor  ◀── engine: claims, and stores what it returns ─┘
//
// Several of these programs share a database, and with it the work. Each shows the same page.
package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
)

// Jobs is a service: the engine that works on the tasks of a Store. Site has its pages. Call Prepare first.
type Jobs struct {
	Store   Store
	Queues  []string      // those that the engine works on; none means all
	Workers int           // how many tasks are worked on at a time
	Pace    time.Duration // of a step of the work
	Hosts   []string      // names by which browsers may reach the pages, beside addresses and localhost
	Logger  *zap.Logger

	engine *stage.Engine
	board  board
	token  string
}

// Prepare makes the engine, which works from Setup on.
func (x *Jobs) Prepare() (err error) {
	x.token = rand.Text()
	x.engine, err = stage.New(stage.Config{
		Store:    x.Store,
		Kinds:    kinds,
		Queues:   x.Queues,
		Provider: x.processors(),
		Workers:  x.Workers,
		Lease:    5 * time.Second, Heartbeat: 500 * time.Millisecond, // which stores the progress that the page shows
		Backoff: func(n int) time.Duration { return time.Duration(n) * time.Second },
		Logger:  x.Logger,
	})
	x.board.engine = x.engine
	return err
}

// Setup is a set-up function.
func (x *Jobs) Setup(s *act.Scheduler) error { return x.engine.Setup(s) }

// Close closes the Store.
func (x *Jobs) Close() error { return x.Store.Close() }

// errAsked marks errors of what was asked for.
var errAsked = errors.New("jobs")

// MaxAdded bounds how many tasks one call of Add adds.
const MaxAdded = 10_000

// Add adds n tasks of a kind, or of all kinds in turn if it is "", and returns their numbers. They are due that long from now. With
// a key, which is for one task, nothing is added if there is a task of the kind with the same key: the number is that of the other
// one. Add blocks until the tasks are stored.
func (x *Jobs) Add(ctx context.Context, kind string, n int, after time.Duration, key string) ([]stage.ID, error) {
	switch {
	case n < 1 || n > MaxAdded:
		return nil, fmt.Errorf("%w: the number of tasks must be from 1 to %d, not %d", errAsked, MaxAdded, n)
	case key != "" && (n > 1 || kind == ""):
		return nil, fmt.Errorf("%w: a key is for one task of one kind", errAsked)
	case len(key) > stage.MaxKey || !utf8.ValidString(key) || strings.Contains(key, "\x00"):
		return nil, fmt.Errorf("%w: a key is UTF-8 without NUL of at most %d bytes", errAsked, stage.MaxKey)
	case after < 0:
		return nil, fmt.Errorf("%w: the delay must not be negative: %v", errAsked, after)
	}
	tasks := make([]stage.NewTask, n)
	for i := range tasks {
		of := orders
		if of.Kind = kind; kind == "" {
			of.Kind = names[i%len(names)]
		}
		t, err := of.NewTask(x.engine, order{Name: fmt.Sprintf("%s %d of %d", of.Kind, i+1, n)})
		if err != nil {
			return nil, err
		}
		t.After, t.Key = after, key
		tasks[i] = t
	}
	return x.engine.EnqueueAll(ctx, tasks...)
}
