// Command echo measures the CPU time that a server spends on one echoed message: Daimon's
// examples/echo against a C epoll loop, in interleaved pairs, with the C server against itself as the
// control. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/pairs"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Pairs, Reactors       int
	Conns, Messages, Size int
	Server                string  // a binary; "": Daimon's examples/echo, built here
	Plain                 bool    // package net beside them
	Apart                 bool    // the load generator has a CPU of its own
	Max                   float64 // the median ratio that is still good; 0: any
}

func main() {
	var o Options
	flag.IntVar(&o.Pairs, "pairs", 20, "how often each server is measured")
	flag.IntVar(&o.Conns, "conns", 100, "connections, each with one message under way")
	flag.IntVar(&o.Messages, "messages", 200000, "messages of a run, over all connections")
	flag.IntVar(&o.Size, "size", 64, "bytes of a message")
	flag.IntVar(&o.Reactors, "reactors", 1, "reactors of each server")
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr and -reactors) instead of examples/echo")
	flag.BoolVar(&o.Plain, "plain", false, "measure a goroutine-per-connection server too")
	flag.BoolVar(&o.Apart, "apart", false, "give the load generator a CPU that no reactor uses")
	flag.Float64Var(&o.Max, "max", 0, "fail when the median ratio is above this (0: never)")
	flag.Parse()
	valid := min(o.Pairs, o.Conns, o.Messages, o.Size, o.Reactors) >= 1
	command.Main("bench/echo", valid, "numbers start at 1", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	dir, err := os.MkdirTemp("", "bench-echo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := compile(dir, o.Server)
	if err != nil {
		return err
	}
	servers := o.columns(programs)
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	clients := load.Generator{Program: programs.Load, Conns: o.Conns}
	if clients.CPU, err = load.CPU(o.Reactors, o.Apart); err != nil {
		return err
	}
	return o.measure(ctx, out, clients, servers)
}

// columns are the servers: the subject, the C server, the C server again, and perhaps the plain one.
func (o Options) columns(p Programs) (all []*server.Process) {
	name := "daimon"
	if o.Server != "" {
		name = filepath.Base(o.Server)
	}
	all = []*server.Process{{Name: name, Program: p.Subject}, {Name: "epoll", Program: p.Epoll},
		{Name: "control", Program: p.Epoll}, {Name: "plain", Program: p.Plain}}
	if !o.Plain {
		all = all[:3]
	}
	for _, s := range all {
		s.Reactors = o.Reactors
	}
	return all
}

// measure divides everything by the C server, which stands next to both the subject and its own control.
func (o Options) measure(ctx context.Context, out io.Writer, clients load.Generator, servers []*server.Process) error {
	run := func(i int) (float64, error) {
		cost, err := clients.Run(ctx, servers[i], talk(o.Size), o.Messages)
		return cost.CPU, err
	}
	const subject, base = 0, 1
	var table pairs.Table
	for i, s := range servers {
		if _, err := run(i); err != nil { // warms up, counts nowhere
			return err
		}
		table.Columns = append(table.Columns, s.Name)
		if i != base {
			table.Ratios = append(table.Ratios, pairs.Ratio{Of: i, To: base})
		}
	}
	table.Ratios[subject].Limit = o.Max
	fmt.Fprintf(out, "server CPU per message of %d bytes, ns; conns %d, messages %d, reactors %d, load on CPU %d (-1: any)\n",
		o.Size, o.Conns, o.Messages, o.Reactors, clients.CPU)
	medians, err := table.Measure(out, o.Pairs, run)
	if err != nil {
		return err
	}
	return table.Judge(medians)
}
