// Command gateway measures proxies of HTTP: Daimon's examples/gateway, nginx, HAProxy and httputil.ReverseProxy, in interleaved
// pairs, with a second nginx as the control. See ../README.md.
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
	"github.com/daimon-go/daimon/bench/internal/load"
)

// Options are the flags.
type Options struct {
	Rows, Servers  string
	Pairs, Streams int
	Scale          float64
	Limits         bool
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names(), ","), "which rows are measured, in this order")
	flag.StringVar(&o.Servers, "servers", strings.Join(columns, ","), "which servers are measured, in this order")
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&o.Streams, "streams", 20000, "streams through a proxy, in the rows idle and abort")
	flag.Float64Var(&o.Scale, "scale", 1, "so many times the requests and streams of a run")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median is above its limit")
	flag.Parse()
	valid := min(o.Pairs, o.Streams) >= 1 && o.Scale > 0
	command.Main("bench/gateway", valid, "numbers are above 0", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names())
	if err != nil {
		return err
	}
	if _, err := command.Choose("servers", o.Servers, columns); err != nil {
		return err
	}
	b, err := build.Temporary()
	if err != nil {
		return err
	}
	defer b.Remove()
	m := measurement{Options: o, out: out, build: b}
	if m.load, err = load.Build(b); err != nil {
		return err
	}
	if err := os.Chmod(b.To, 0o755); err != nil { // nginx is nobody's
		return err
	}
	for _, i := range chosen {
		if err := m.row(ctx, rows[i]); err != nil {
			return fmt.Errorf("%s: %w", rows[i].name, err)
		}
	}
	return errors.Join(m.above...)
}
