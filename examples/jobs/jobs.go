// This is how the parts work together:
//
//	browser ──▶ site.go, events.go ──▶ board.go: one poll of the store for all viewers ─┐
//	curl ─────▶ site.go: add, suspend, resume, retry, cancel, pause ────────────────────┼──▶ Store
//	            work.go: the processor  ◀── engine: claims, and stores what it returns ─┘
//
// Several of these programs share a database, and with it the work. Each shows the same page.

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

// Jobs is a service: the engine that works on the tasks of a database. Site has its pages.
type Jobs struct {
	DB      string        // a file of SQLite, which is made if there is none, or the URL of a database of PostgreSQL, postgres://…
	Load    int           // how many tasks are added at first, but not after an upgrade
	Queues  []string      // the queues that the engine works on; none means all
	Workers int           // how many tasks are worked on at a time
	Pace    time.Duration // of a step of the work
	Report  time.Duration // between two reports; 0 means none
	Hosts   []string      // names by which browsers may reach the pages, beside addresses and localhost
	Logger  *zap.Logger

	store  database
	engine *stage.Engine
	board  board
	token  string
}

// Setup is a set-up function. It opens the database, and begins to work. So it comes after set-up functions that may fail, above
// all that of the service that listens.
func (x *Jobs) Setup(s *act.Scheduler) error {
	if s.Index() > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := x.prepare(ctx); err != nil {
		return err
	}
	s.Spawn(&act.Call[any]{F: x.load}) // in its first turn, which comes after LoadState
	return x.engine.Setup(s)
}

// load adds the tasks of Load.
func (x *Jobs) load() (none any, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for n := x.Load; n > 0 && err == nil; n -= maxAdded {
		_, err = x.create(ctx, "", min(n, maxAdded), 0, "")
	}
	return none, err
}

// prepare opens the database and makes the engine.
func (x *Jobs) prepare(ctx context.Context) error {
	opened, err := open(ctx, x.DB)
	if err != nil {
		return err
	}
	x.store, x.token = opened, rand.Text()
	config := stage.Config{
		Store:      x.store,
		Kinds:      kinds,
		Queues:     x.Queues,
		Processors: x.processors(),
		Middleware: []func(stage.Processor) stage.Processor{timed},
		Workers:    x.Workers,
		Lease:      5 * time.Second, Heartbeat: 500 * time.Millisecond, // which stores the progress that the page shows
		// Tasks that have failed are kept until somebody has looked at them.
		Upkeep: stage.Upkeep{Retention: map[store.Status]time.Duration{store.Normal: 7 * 24 * time.Hour, store.Canceled: 24 * time.Hour}},
		Logger: x.Logger,
	}
	if x.Report > 0 {
		config.Upkeep.Periodic = map[string]stage.Periodic{"report": {Kind: "report", Schedule: stage.Every(x.Report)}}
	}
	x.engine, err = stage.New(config)
	x.board.engine = x.engine
	return err
}

// database keeps the tasks. Any number of programs may have it open.
type database interface {
	store.Store
	io.Closer
}

// open opens a database.
func open(ctx context.Context, db string) (database, error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		return postgres.Open(ctx, postgres.Config{Connection: db, Counts: true})
	}
	return sqlite.Open(db, sqlite.Config{Counts: true})
}

// StateName makes Jobs an upgrade.Keeper: the newer program has the same arguments, but does not add the tasks of Load again, and
// keeps the token.
func (x *Jobs) StateName() string { return "jobs" }

// SaveState returns the token.
func (x *Jobs) SaveState(context.Context) ([]byte, error) { return []byte(x.token), nil }

// LoadState takes the token. It is called after Setup, and before the program accepts.
func (x *Jobs) LoadState(token []byte) error {
	x.token, x.Load = string(token), 0
	return nil
}

// Close closes the database.
func (x *Jobs) Close() error {
	if x.store == nil {
		return nil
	}
	return x.store.Close()
}

// errAsked marks errors in a client's request.
var errAsked = errors.New("jobs")

// maxAdded bounds how many tasks one call of create adds.
const maxAdded = 10_000

// create adds n tasks of a kind, or of three kinds in turn if it is "", and returns their numbers. They are due that long from now. With
// a key, which is for one task, nothing is added if there is a task of the kind with the same key: the number is that of the other
// one.
func (x *Jobs) create(ctx context.Context, kind string, n int, after time.Duration, key string) ([]store.ID, error) {
	switch {
	case n < 1 || n > maxAdded:
		return nil, fmt.Errorf("%w: the number of tasks must be from 1 to %d, not %d", errAsked, maxAdded, n)
	case key != "" && (n > 1 || kind == ""):
		return nil, fmt.Errorf("%w: a key is for one task of one kind", errAsked)
	case len(key) > store.MaxKey || !utf8.ValidString(key) || strings.Contains(key, "\x00"):
		return nil, fmt.Errorf("%w: a key is UTF-8 without NUL of at most %d bytes", errAsked, store.MaxKey)
	case after < 0:
		return nil, fmt.Errorf("%w: the delay must not be negative: %v", errAsked, after)
	}
	tasks := make([]store.NewTask, n)
	for i := range tasks {
		of := orders
		of.Kind = cmp.Or(kind, inTurn[i%len(inTurn)])
		t, err := of.NewTask(x.engine, order{Name: fmt.Sprintf("%s %d of %d", of.Kind, i+1, n)})
		if err != nil {
			return nil, err
		}
		t.After, t.Key = after, key
		tasks[i] = t
	}
	return x.engine.EnqueueAll(ctx, tasks...)
}
