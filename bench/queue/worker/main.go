// Command worker runs one row of bench/queue with one queue, on an empty database, and prints measure.Figures.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/queue/measure"
)

// Options are the flags.
type Options struct {
	Queue, Row  string
	Database    string // a connection string
	Tasks       int
	Workers     int // at a time
	Conns       int // of the pool
	Rate        int // tasks a second
	Last, Every time.Duration
	Profile     string
	Enqueue     bool // only enqueue, for another process that works
}

func main() {
	var o Options
	flag.StringVar(&o.Queue, "queue", "", "daimon or river")
	flag.StringVar(&o.Row, "row", "", "the row")
	flag.StringVar(&o.Database, "db", "", "the connection `string`")
	flag.IntVar(&o.Tasks, "tasks", 0, "how many tasks")
	flag.IntVar(&o.Workers, "workers", 0, "how many tasks are worked on at a time")
	flag.IntVar(&o.Conns, "conns", 0, "how many connections the pool has")
	flag.IntVar(&o.Rate, "rate", 0, "tasks a second")
	flag.DurationVar(&o.Last, "last", 0, "how long a long row takes")
	flag.DurationVar(&o.Every, "every", 0, "how often a long row says something")
	flag.StringVar(&o.Profile, "profile", "", "write a CPU profile to this `file`")
	flag.BoolVar(&o.Enqueue, "enqueue", false, "only enqueue -tasks at -rate")
	flag.Parse()
	command.Main("bench/queue/worker", rows[o.Row] != nil && queues[o.Queue] != nil, "it is started by bench/queue", func(ctx context.Context) error {
		f, err := o.run(ctx)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.Queue, o.Row, err)
		}
		return json.NewEncoder(os.Stdout).Encode(f)
	})
}

// run opens the queue, and leaves nothing open.
func (o Options) run(ctx context.Context) (f measure.Figures, err error) {
	q, err := queues[o.Queue](ctx, o)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	b, err := o.bench(ctx, q)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.db.Close(context.WithoutCancel(ctx))) }()
	if o.Enqueue {
		return f, b.enqueue(ctx)
	}
	if o.Profile != "" {
		file, err := os.Create(o.Profile)
		if err != nil {
			return f, err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return f, err
		}
		defer pprof.StopCPUProfile()
	}
	return rows[o.Row](ctx, b)
}
