// Command process compares the processes of package process with goroutines that have channels, and with the actors of
// protoactor-go: time, CPU time, allocations and memory, in interleaved pairs, with Daimon against itself as the
// control. See ../README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"strings"

	"github.com/daimon-go/daimon/bench/internal/command"
)

// Options are the flags.
type Options struct {
	Rows    string
	Pairs   int
	Limits  bool
	Profile string  // a directory; "": none
	Scale   float64 // of the work
}

func main() {
	var o Options
	flag.StringVar(&o.Rows, "rows", strings.Join(names(), ","), "the rows to measure")
	flag.IntVar(&o.Pairs, "pairs", 5, "how often each program is measured in each row; at most 2 for sleep")
	flag.BoolVar(&o.Limits, "limits", false, "fail when a median ratio is above its limit")
	flag.StringVar(&o.Profile, "profile", "", "write CPU profiles of Daimon to this `directory`, one for each row")
	flag.Float64Var(&o.Scale, "scale", 1, "a factor for the work of a run")
	flag.Parse()
	valid := o.Pairs >= 1 && o.Scale > 0
	command.Main("bench/process", valid, "numbers must be above 0", func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, measures and prints. It leaves no process, and no file except profiles.
func run(ctx context.Context, out io.Writer, o Options) error {
	chosen, err := command.Choose("rows", o.Rows, names())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-process-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := compile(dir)
	if err != nil {
		return err
	}
	var above error
	for _, i := range chosen {
		more, err := o.tables(ctx, out, programs, rows[i])
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
