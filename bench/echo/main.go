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
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Pairs, Reactors int
	Server          string  // a binary; "": Daimon's examples/echo, built here
	Plain           bool    // package net beside them
	Apart           bool    // the load generator has a CPU of its own
	Max             float64 // the median ratio that is still good; 0: any
	Load            Load
}

func main() {
	var o Options
	flag.IntVar(&o.Pairs, "pairs", 20, "how often each server is measured")
	flag.IntVar(&o.Load.Conns, "conns", 100, "connections, each with one message under way")
	flag.IntVar(&o.Load.Messages, "messages", 200000, "messages of a run, over all connections")
	flag.IntVar(&o.Load.Size, "size", 64, "bytes of a message")
	flag.IntVar(&o.Reactors, "reactors", 1, "reactors of each server")
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr and -reactors) instead of examples/echo")
	flag.BoolVar(&o.Plain, "plain", false, "measure a goroutine-per-connection server too")
	flag.BoolVar(&o.Apart, "apart", false, "give the load generator a CPU that no reactor uses")
	flag.Float64Var(&o.Max, "max", 0, "fail when the median ratio is above this (0: never)")
	flag.Parse()
	if min(o.Pairs, o.Load.Conns, o.Load.Messages, o.Load.Size, o.Reactors) < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench/echo: numbers start at 1, and there are no arguments but flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/echo:", err)
		os.Exit(1)
	}
}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	dir, err := os.MkdirTemp("", "bench-echo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var servers []*server.Process
	defer func() {
		for _, s := range servers {
			s.Stop()
		}
	}()
	programs, err := build(dir, o.Server)
	if err != nil {
		return err
	}
	for _, s := range o.columns(programs) {
		if err := s.Start(ctx, o.Reactors); err != nil {
			return err
		}
		servers = append(servers, s)
	}
	o.Load.Program = programs.Load
	if o.Load.CPU, err = loadCPU(o.Reactors, o.Apart); err != nil {
		return err
	}
	ratio, err := measure(ctx, out, o, servers)
	if err == nil && o.Max > 0 && ratio > o.Max {
		err = fmt.Errorf("the median ratio %.3f is above %.3f", ratio, o.Max)
	}
	return err
}

// columns are the servers: the subject, the C server, the C server again, and perhaps the plain one.
func (o Options) columns(p Programs) []*server.Process {
	name := "daimon"
	if o.Server != "" {
		name = filepath.Base(o.Server)
	}
	all := []*server.Process{{Name: name, Program: p.Subject}, {Name: "epoll", Program: p.Epoll},
		{Name: "control", Program: p.Epoll}, {Name: "plain", Program: p.Plain}}
	if !o.Plain {
		all = all[:3]
	}
	return all
}
