// Package tool is the main function of the examples that are not servers: they work until nothing is left to do.
// Servers use package program.
package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Parse parses the command line with the flags of [flag.CommandLine], and calls check to look at the result. An
// error ends the program with one sentence, which begins with name, and status 2.
func Parse(name string, check func() error) {
	fs := flag.CommandLine
	fs.Init(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // one sentence is enough
	err := fs.Parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(os.Stderr)
		fs.Usage()
		os.Exit(0)
	}
	if err == nil {
		err = check()
	}
	if err != nil {
		exit(name, err, 2)
	}
}

// NoArguments returns an error if there are arguments after the flags.
func NoArguments() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	return nil
}

// Run runs one scheduler until nothing is left to do. A task that fails is logged and does not disturb the others;
// the status is 1 then. A signal ends the program at once, and what was left undone is an error.
func Run(name string, setup ...func(*act.Scheduler) error) {
	failed := false
	watch := &act.Trace{Ended: func(_ *act.Task, err error) {
		if err != nil && !errors.Is(err, act.ErrDropped) { // Run's error tells what was dropped
			failed = true
		}
	}}
	now := shutdown.Policy{Kind: shutdown.Halting, Drop: true}
	setup = append(setup, monitor.Signals(now))
	if err := act.Run(context.Background(), act.Config{Schedulers: 1, Trace: watch}, setup...); err != nil {
		exit(name, err, 1)
	}
	if failed {
		os.Exit(1)
	}
}

func exit(name string, err error, status int) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(status)
}

// Duration defines a flag as [flag.DurationVar] does, with errors that say what is wrong with a value.
func Duration(p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flag.Var((*duration)(p), name, usage)
}

type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

// Set is called by package flag, whose error names the flag and the value.
func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err == nil {
		*d = duration(v)
		return nil
	}
	if _, err := time.ParseDuration(text + "s"); err == nil {
		return errors.New("it needs a unit, as in " + text + "s")
	}
	return errors.New("it is no duration, such as 300ms, 5s or 1m30s")
}
