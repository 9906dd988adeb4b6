// Command publish measures the CPU time that a publish/subscribe server spends on one delivery: topics, a server of
// Daimon, on two schedulers against the same on one, in interleaved pairs, with one scheduler against itself as the
// control. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Pairs, Subscribers, Messages, Bursts, Size int
	Max                                        float64 // the median of two/one that is still good; 0: any
}

func main() {
	var o Options
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&o.Subscribers, "subscribers", 1000, "subscribers, which all get every message")
	flag.IntVar(&o.Messages, "messages", 20, "messages of a burst, posted back to back")
	flag.IntVar(&o.Bursts, "bursts", 50, "bursts of a run; each begins when all subscribers have the one before")
	flag.IntVar(&o.Size, "size", 64, "bytes of a message")
	flag.Float64Var(&o.Max, "max", 0, "fail when the median of two/one is above this (0: never)")
	flag.Parse()
	valid := min(o.Pairs, o.Subscribers, o.Messages, o.Bursts, o.Size) >= 1
	command.Main("bench/publish", valid, "numbers start at 1", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	dir, err := os.MkdirTemp("", "bench-publish-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := build.Into(dir)
	if err != nil {
		return err
	}
	program, err := b.Go("publish/topics")
	if err != nil {
		return err
	}
	servers := []*server.Process{
		{Name: "two", Program: program, Reactors: 2},
		{Name: "one", Program: program, Reactors: 1},
		{Name: "control", Program: program, Reactors: 1},
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	var clients []*crowd
	for _, s := range servers {
		c, err := o.connect(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		defer c.close()
		clients = append(clients, c)
	}
	measure := func(i int) (float64, error) {
		before, err := servers[i].CPU()
		if err != nil {
			return 0, err
		}
		for range o.Bursts {
			if err := clients[i].burst(); err != nil {
				return 0, fmt.Errorf("%s: %w", servers[i].Name, err)
			}
		}
		after, err := servers[i].CPU()
		return float64(after-before) / float64(o.Bursts*o.Messages*o.Subscribers), err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := measure(i); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "server CPU per delivery of %d bytes, ns; %d messages posted back to back to %d subscribers, on two reactors and on one\n",
		o.Size, o.Messages, o.Subscribers)
	table := pairs.Table{
		Columns: []string{"two", "one", "control"},
		Ratios:  []pairs.Ratio{{Of: 0, To: 1, Limit: o.Max}, {Of: 2, To: 1}},
	}
	medians, err := table.Measure(out, o.Pairs, measure)
	if err != nil {
		return err
	}
	return table.Judge(medians)
}
