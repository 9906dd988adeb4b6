// Command http2 measures the CPU time that a server spends on a request of HTTP/2, and the memory that it spends on an idle
// connection and on a handler that waits: package httpd and package nethttp against net/http, nginx, fib and grpc-go, in
// interleaved pairs, with a second net/http as the control. h2load makes the load. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
)

// Options are the flags.
type Options struct {
	Rows, Servers string
	Server        string // a binary
	Pairs         int
	Scale         float64
	Apart, Limits bool
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names(), ","), "which rows are measured, in this order")
	flag.StringVar(&o.Servers, "servers", strings.Join(columns, ","), "which servers are measured")
	flag.StringVar(&o.Server, "server", "", "measure this `binary`, of nethttp/server in another tree, as well: as native-other")
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.Float64Var(&o.Scale, "scale", 1, "so many times the requests of a run")
	flag.BoolVar(&o.Apart, "apart", false, "give h2load a CPU that no reactor uses")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.Parse()
	valid := o.Pairs >= 1 && o.Scale > 0
	command.Main("bench/http2", valid, "numbers are above 0", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-http2-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // nginx is nobody's
		return err
	}
	m := measurement{Options: o, out: out, dir: dir}
	if m.build, err = build.Into(dir); err != nil {
		return err
	}
	if m.identity, err = identity.Issue(dir); err != nil {
		return err
	}
	if m.on, err = load.CPU(1, o.Apart); err != nil {
		return err
	}
	for _, i := range chosen {
		if err := m.row(ctx, rows[i]); err != nil {
			return fmt.Errorf("%s: %w", rows[i].name, err)
		}
	}
	return errors.Join(m.above...)
}
