// Command queue compares package stage on PostgreSQL with River, on the same private server: time and CPU time for a task,
// from the call that enqueues to the begin, and what long transactions and long tasks cost. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/internal/testing/pgserver"
)

// Options are the flags.
type Options struct {
	Rows, Queues string
	Pairs        int
	Scale        float64 // of the numbers of tasks
	Workers      int
	Conns        int
	Rate, Feed   int
	Last, Every  time.Duration
	Limits       bool
	Profile      string // a directory; "": none
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names(), ","), "the rows to measure:\n"+described()+"\n")
	flag.StringVar(&o.Queues, "queues", strings.Join(queues, ","), "the queues; control is River again")
	flag.IntVar(&o.Pairs, "pairs", 5, "how often each queue is measured in each row; once in snapshot and heartbeats")
	flag.Float64Var(&o.Scale, "scale", 1, "a factor for the numbers of tasks")
	flag.IntVar(&o.Workers, "workers", 500, "how many tasks a process works on at a time")
	flag.IntVar(&o.Conns, "conns", 10, "how many connections a process may have")
	flag.IntVar(&o.Rate, "rate", 50, "tasks a second in start and start-apart")
	flag.IntVar(&o.Feed, "feed", 2000, "tasks a second in snapshot")
	flag.DurationVar(&o.Last, "last", 30*time.Second, "how long snapshot and heartbeats take for each queue; the goal is 10m")
	flag.DurationVar(&o.Every, "every", 5*time.Second, "how often they say something")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.StringVar(&o.Profile, "profile", "", "write CPU profiles of the workers to this `directory`, one for each row and queue")
	flag.Parse()
	valid := o.Pairs >= 1 && o.Scale > 0 && o.Workers >= 1 && o.Conns >= 1 && o.Rate >= 1 && o.Feed >= 1 && o.Every > 0 && o.Last >= o.Every
	command.Main("bench/queue", valid, "numbers must be above 0, and -last is at least -every", func(ctx context.Context) error {
		return run(ctx, os.Stdout, o)
	})
}

// settings are the settings of the database server, for all queues: durable, which is the default, with more memory
// than the default, and without a checkpoint in the middle of a row.
var settings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"shared_buffers":     "256MB",
	"max_wal_size":       "4GB",
	"max_connections":    "200",
}

// run builds, measures and prints. It leaves no process, and no file except profiles.
func run(ctx context.Context, out io.Writer, o Options) (err error) {
	chosen, err := o.chosen()
	if err != nil {
		return err
	}
	p, err := prepare()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return p.measure(ctx, out, o, chosen)
}

// chosen returns the indices of the rows to measure, if all rows and queues have such names.
func (o Options) chosen() ([]int, error) {
	if _, err := command.Choose("queues", o.Queues, queues); err != nil {
		return nil, err
	}
	return command.Choose("rows", o.Rows, names())
}

// place is what all rows need: the compiled worker, and a server of its own.
type place struct {
	dir    string
	worker string // the program
	server *pgserver.Server
	runs   int
}

func prepare() (*place, error) {
	p := &place{}
	var err error
	if p.dir, err = os.MkdirTemp("", "bench-queue-"); err != nil {
		return nil, err
	}
	b, err := build.Into(p.dir)
	if err == nil {
		p.worker, err = b.Go("queue/worker")
	}
	if err == nil {
		p.server, err = pgserver.Start(pgserver.Config{Settings: settings})
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *place) close() (err error) {
	if p.server != nil {
		err = p.server.Close()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// measure measures rows, and prints.
func (p *place) measure(ctx context.Context, out io.Writer, o Options, chosen []int) error {
	m := measurement{Options: o, place: p, out: out}
	var above error
	for _, i := range chosen {
		more, err := m.row(ctx, rows[i])
		if err != nil {
			return err
		}
		above = errors.Join(above, more)
	}
	if o.Limits {
		return above
	}
	return nil
}
