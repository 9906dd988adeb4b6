// Command echo measures the CPU time that a server spends on one echoed message: Daimon's examples/echo
// against a C epoll loop, and examples/echo-coro against the former, in interleaved pairs, with the C server
// against itself as the control; or, with -idle, the memory that it spends on a connection on which nothing
// happens. See ../README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/build"
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
	Coro                  bool    // with examples/echo-coro and reads
	Uring                 bool    // with C servers over io_uring
	Plain                 bool    // with package net
	Loops                 bool    // with gnet, nbio, netpoll and fib
	Fib                   bool    // false: without fib all the same
	Single                bool    // the server with -engine epoll, and itself once more as the control
	Inspect               bool    // the server with -inspect, and itself once more as the control
	Bound                 bool    // the server with -cpus auto, and itself once more as the control
	Rate                  int     // messages a second; 0: as many as the clients get answers
	Apart                 bool    // the load generator has a CPU of its own
	Max, MaxCoro          float64 // the median ratios that are still good; 0: any
	Idle                  int     // connections; 0: CPU is measured, not memory
}

func main() {
	var o Options
	flag.IntVar(&o.Pairs, "pairs", 20, "how often each server is measured")
	flag.IntVar(&o.Conns, "conns", 100, "connections, each with one message under way")
	flag.IntVar(&o.Messages, "messages", 200000, "messages of a run, over all connections")
	flag.IntVar(&o.Size, "size", 64, "bytes of a message")
	flag.IntVar(&o.Reactors, "reactors", 1, "reactors of each server")
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr and -reactors) instead of examples/echo")
	flag.BoolVar(&o.Coro, "coro", false, "measure examples/echo-coro and reads too, against examples/echo")
	flag.BoolVar(&o.Uring, "uring", false, "measure two C servers over io_uring too: uring and batch")
	flag.BoolVar(&o.Plain, "plain", false, "measure a goroutine-per-connection server too")
	flag.BoolVar(&o.Loops, "loops", false, "measure other event loops for Go too: gnet, nbio, netpoll and fib")
	flag.BoolVar(&o.Fib, "fib", true, "with -loops: measure fib, too; the go command downloads Go 1.27.3 for it")
	flag.BoolVar(&o.Single, "single", false, "measure the server with -engine epoll too, against itself without")
	flag.BoolVar(&o.Inspect, "inspect", false, "measure the server with -inspect too, against itself without")
	flag.BoolVar(&o.Bound, "bound", false, "measure the server with -cpus auto too, against itself without; the system places them and the load")
	flag.IntVar(&o.Rate, "rate", 0, "send so many messages a second, and measure latencies too; with garbage (0: as many as are answered)")
	flag.BoolVar(&o.Apart, "apart", false, "give the load generator a CPU that no reactor uses")
	flag.Float64Var(&o.Max, "max", 0, "fail when the median of daimon/epoll is above this (0: never)")
	flag.Float64Var(&o.MaxCoro, "max-coro", 0, "with -coro: fail when the median of coro/daimon is above this (0: never)")
	flag.IntVar(&o.Idle, "idle", 0, "measure memory, with so many idle connections, instead of CPU")
	flag.Parse()
	valid := min(o.Pairs, o.Conns, o.Messages, o.Size, o.Reactors) >= 1 && min(o.Idle, o.Rate) >= 0
	command.Main("bench/echo", valid, "numbers start at 1", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	dir, err := os.MkdirTemp("", "bench-echo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Uring = o.Uring && allowed(out)
	b, err := build.Into(dir)
	if err != nil {
		return err
	}
	servers, ratios, err := o.columns(b)
	if err != nil {
		return err
	}
	if o.Idle > 0 {
		return o.memory(ctx, out, servers, ratios)
	}
	clients := load.Generator{Conns: o.Conns, Rate: o.Rate, CPU: -1}
	if clients.Program, err = load.Build(b); err != nil {
		return err
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	if !o.Bound {
		if clients.CPU, err = load.CPU(o.Reactors, o.Apart); err != nil {
			return err
		}
	}
	return o.cpu(ctx, out, clients, servers, ratios)
}

// columns compiles the servers and returns them in their order, and the ratios. The subject and all servers after it are
// divided by the C server, which stands next to both the subject and its own control; the servers with coroutines, before the
// subject, are divided by the subject.
func (o Options) columns(b build.Builder) (servers []*server.Process, ratios []pairs.Ratio, err error) {
	add := func(name string, flags ...string) (column int) {
		program, failed := o.compile(b, name)
		err = errors.Join(err, failed)
		servers = append(servers, &server.Process{Name: name, Program: program, Reactors: o.Reactors, Flags: flags, Anywhere: o.Bound})
		return len(servers) - 1
	}
	divide := func(of, by int, limit float64) { ratios = append(ratios, pairs.Ratio{Of: of, To: by, Limit: limit}) }
	if o.Coro {
		reads, coro := add("reads"), add("coro")
		divide(reads, coro+1, 0)
		divide(coro, coro+1, o.MaxCoro)
	}
	twin := func(name string, flags ...string) {
		with, again := add(name, flags...), add("again")
		divide(with, again+1, 0)
		divide(again, again+1, 0)
	}
	switch {
	case o.Single:
		twin("single", "-engine", "epoll")
	case o.Inspect:
		twin("inspect", "-inspect", "127.0.0.1:0", "-inspect-token", "bench")
	case o.Bound:
		twin("bound", "-cpus", "auto")
	}
	subject := add("daimon")
	if o.Server != "" {
		servers[subject].Name = filepath.Base(o.Server)
	}
	if o.Bound {
		return servers, ratios, err // the C server binds itself
	}
	epoll := add("epoll")
	divide(subject, epoll, o.Max)
	for _, name := range o.others() {
		divide(add(name), epoll, 0)
	}
	return servers, ratios, err
}

// allowed reports whether the kernel lets the process use io_uring. Without parameters, EFAULT is what it then answers.
func allowed(out io.Writer) bool {
	_, _, err := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	if err != unix.EFAULT {
		fmt.Fprintf(out, "uring and batch are left out: io_uring_setup: %v\n", err)
	}
	return err == unix.EFAULT
}

// others are the columns after that of the C server.
func (o Options) others() []string {
	all := []string{"control"}
	if o.Rate > 0 {
		all = append(all, "garbage")
	}
	if o.Uring {
		all = append(all, "uring", "batch")
	}
	if o.Plain {
		all = append(all, "plain")
	}
	if o.Loops {
		all = append(all, "gnet", "nbio", "netpoll")
	}
	if o.Loops && o.Fib {
		all = append(all, "fib")
	}
	return all
}

// cpu prints the table of messages.
func (o Options) cpu(ctx context.Context, out io.Writer, clients load.Generator, servers []*server.Process, ratios []pairs.Ratio) error {
	costs := make([][]load.Cost, len(servers))
	run := func(i int) (float64, error) {
		cost, err := clients.Run(ctx, servers[i], load.Echo(o.Size), o.Messages)
		costs[i] = append(costs[i], cost)
		return cost.CPU, err
	}
	for i := range servers { // warms up, counts nowhere
		if _, err := run(i); err != nil {
			return err
		}
		costs[i] = nil
	}
	fmt.Fprintf(out, "server CPU per message of %d bytes, ns; conns %d, messages %d, %d a second (0: all), reactors %d, load on CPU %d (-1: any)\n",
		o.Size, o.Conns, o.Messages, o.Rate, o.Reactors, clients.CPU)
	table := pairs.Table{Columns: names(servers), Ratios: ratios}
	medians, err := table.Measure(out, o.Pairs, run)
	if err != nil {
		return err
	}
	if o.Rate > 0 {
		return errors.Join(load.Latencies(out, table, costs), table.Judge(medians))
	}
	for i, s := range servers {
		slices.SortFunc(costs[i], func(a, b load.Cost) int { return cmp.Compare(a.Wall, b.Wall) })
		wall := costs[i][len(costs[i])/2].Wall
		fmt.Fprintf(out, "%s: ns from one message to the next, median %.0f, at most %.0f\n", s.Name, wall, costs[i][len(costs[i])-1].Wall)
	}
	return table.Judge(medians)
}

func names(servers []*server.Process) (all []string) {
	for _, s := range servers {
		all = append(all, s.Name)
	}
	return all
}
