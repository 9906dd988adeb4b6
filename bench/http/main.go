// Command http measures the CPU time that a server spends on one HTTP request: Daimon's examples/httpd
// against fasthttp, net/http and nginx, in interleaved pairs, with a second fasthttp as the control; or, with
// -idle, the memory that it spends on a connection on which nothing happens. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/answer"
	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/load"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Servers                          string
	Server, Nginx                    string // binaries
	Pairs, Conns, Requests, Reactors int
	Depths                           depths
	Request                          string // a file; "": a small one
	Rate                             int    // how often a second requests are sent; 0: as often as they are answered
	Apart                            bool   // the load generator has a CPU of its own
	Max                              float64
	Limits                           bool
	Idle                             int // connections; 0: CPU is measured, not memory
}

func main() {
	o := Options{Depths: depths{1, 16}}
	flag.StringVar(&o.Servers, "servers", all, "which servers are measured, in this order")
	flag.StringVar(&o.Server, "server", "", "measure this `binary` (with flags -addr and -reactors) as daimon, instead of examples/httpd")
	flag.StringVar(&o.Nginx, "nginx", "", "the `path` of nginx (default: where it is installed)")
	flag.IntVar(&o.Pairs, "pairs", 20, "how often each server is measured")
	flag.IntVar(&o.Conns, "conns", 100, "connections, each with -depth requests under way")
	flag.IntVar(&o.Requests, "requests", 200000, "requests of a run, over all connections")
	flag.IntVar(&o.Reactors, "reactors", 1, "reactors, GOMAXPROCS, workers of each server")
	flag.Var(&o.Depths, "depth", "how many requests are sent at a time; several `numbers`, each for a table of its own")
	flag.StringVar(&o.Request, "request", "", "send the content of this `file`, not a small one")
	flag.IntVar(&o.Rate, "rate", 0, "send requests so often in a second, and measure latencies too (0: as often as they are answered)")
	flag.BoolVar(&o.Apart, "apart", false, "give the load generator a CPU that no reactor uses")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.Float64Var(&o.Max, "max", 0, "the only limit: fail when the median of daimon/fasthttp is above this (0: the limits of the README)")
	flag.IntVar(&o.Idle, "idle", 0, "measure memory, with so many idle connections, instead of CPU")
	flag.Parse()
	valid := min(o.Pairs, o.Conns, o.Requests, o.Reactors) >= 1 && min(o.Idle, o.Rate) >= 0 && o.Max >= 0
	command.Main("bench/http", valid, "numbers start at 1", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// depths are numbers of requests that are sent at a time: a flag.Value.
type depths []int

func (d *depths) String() string { return strings.Trim(fmt.Sprint([]int(*d)), "[]") }

func (d *depths) Set(text string) error {
	*d = nil
	for field := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("%q is no number from 1 to 1000", field)
		}
		*d = append(*d, n)
	}
	return nil
}

// run builds, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	if _, err := answer.Request(o.Request, ""); err != nil { // before anything is compiled
		return err
	}
	dir, err := os.MkdirTemp("", "bench-http-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx is nobody's
		return err
	}
	b, err := build.Into(dir)
	if err != nil {
		return err
	}
	servers, err := o.columns(out, b)
	if err != nil {
		return err
	}
	if o.Idle > 0 {
		return o.memory(ctx, out, servers)
	}
	clients := load.Generator{Conns: o.Conns, Rate: o.Rate}
	if clients.Program, err = load.Build(b); err != nil {
		return err
	}
	if clients.CPU, err = load.CPU(o.Reactors, o.Apart); err != nil {
		return err
	}
	stop, err := server.StartAll(ctx, servers)
	defer stop()
	if err != nil {
		return err
	}
	return o.cpu(ctx, out, clients, servers)
}
