// Command nethttp measures what http.Handlers cost on Daimon, by package nethttp, against net/http's own server: CPU time and
// voluntary context switches of a request, in interleaved pairs, with a second net/http as the control. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/identity"
	"github.com/daimon-go/daimon/bench/internal/load"
)

// Options are the flags.
type Options struct {
	Rows            string
	Server          string // a binary
	Pairs, Reactors int
	Scale           float64
	Apart, Limits   bool
	Profile         string // a directory
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names(), ","), "which rows are measured, in this order")
	flag.StringVar(&o.Server, "server", "", "measure this `binary`, of nethttp/server in another tree, as well: as nethttp-other and inline-other")
	flag.IntVar(&o.Pairs, "pairs", 10, "how often each server is measured")
	flag.IntVar(&o.Reactors, "reactors", 1, "reactors, GOMAXPROCS of each server")
	flag.Float64Var(&o.Scale, "scale", 1, "so many times the requests of a run")
	flag.BoolVar(&o.Apart, "apart", true, "give the load generator a CPU that no reactor uses")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.StringVar(&o.Profile, "profile", "", "write a CPU profile of each server of each row into this `directory`")
	flag.Parse()
	valid := min(o.Pairs, o.Reactors) >= 1 && o.Scale > 0
	command.Main("bench/nethttp", valid, "numbers are above 0", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-nethttp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for name, size := range files {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o644); err != nil {
			return err
		}
	}
	m := measurement{Options: o, out: out, root: dir}
	b, err := build.Into(dir)
	if err != nil {
		return err
	}
	if m.program, err = b.Go("nethttp/server"); err != nil {
		return err
	}
	if m.counting, err = b.Go("tls/load"); err != nil {
		return err
	}
	if m.exact, err = load.Build(b); err != nil {
		return err
	}
	if m.identity, err = identity.Issue(dir); err != nil {
		return err
	}
	m.summary = "| row"
	for _, c := range m.columns() {
		m.summary += " | " + c.name
	}
	m.summary += " |\n|" + strings.Repeat("---|", len(m.columns())+1) + "\n"
	for _, i := range chosen {
		if err := m.row(ctx, rows[i]); err != nil {
			return fmt.Errorf("%s: %w", rows[i].name, err)
		}
	}
	fmt.Fprintf(out, "\nns of CPU per request with net/http, ratios to it (minimum, maximum), voluntary context switches: medians\n\n%s", m.summary)
	return errors.Join(m.above...)
}
