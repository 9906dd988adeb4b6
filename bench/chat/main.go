// Command chat measures how long a line of examples/chat takes from one window to all others, with many visitors in one
// room, of whom some talk. Each visitor is a connection of WebSocket. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/daimon-go/daimon/bench/internal/build"
	"github.com/daimon-go/daimon/bench/internal/command"
	"github.com/daimon-go/daimon/bench/internal/server"
)

// Options are the flags.
type Options struct {
	Visitors, Talkers, Lines, Size, Reactors int
	Every                                    time.Duration
	Max                                      time.Duration // the p99 that is still good; 0: any
}

func main() {
	var o Options
	flag.IntVar(&o.Visitors, "visitors", 10_000, "visitors, all in one room")
	flag.IntVar(&o.Talkers, "talkers", 50, "how many of them talk")
	flag.IntVar(&o.Lines, "lines", 200, "lines that are said, by all talkers together")
	flag.DurationVar(&o.Every, "every", 10*time.Second, "how often each talker says a line; the talkers are spread evenly")
	flag.IntVar(&o.Size, "size", 64, "bytes of a line")
	flag.IntVar(&o.Reactors, "reactors", 2, "reactors of the server")
	flag.DurationVar(&o.Max, "max", 0, "fail when the p99 is above this (0: never)")
	flag.Parse()
	valid := min(o.Talkers, o.Lines, o.Reactors) >= 1 && o.Visitors > o.Talkers && o.Every >= time.Second && o.Size >= 40 && o.Size <= 1000
	command.Main("bench/chat", valid, "there are more visitors than talkers, -every is at least 1s, -size 40 to 1000, and other numbers start at 1",
		func(ctx context.Context) error { return run(ctx, os.Stdout, o) })
}

// run builds, starts, measures, prints, and leaves no process and no file behind.
func run(ctx context.Context, out io.Writer, o Options) error {
	b, err := build.Temporary()
	if err != nil {
		return err
	}
	defer b.Remove()
	program, err := b.Daimon("examples/chat")
	if err != nil {
		return err
	}
	web, free, err := server.Reserve()
	if err != nil {
		return err
	}
	defer free()
	s := &server.Process{Name: "chat", Program: program, Reactors: o.Reactors, Flags: []string{"-web", web.String()},
		Further: []string{web.String()}}
	if err := s.Start(ctx); err != nil {
		return err
	}
	defer s.Stop()
	empty, err := s.Memory()
	if err != nil {
		return err
	}
	c, err := enter(ctx, web, o)
	if err != nil {
		return err
	}
	defer c.close()
	full, err := s.Memory()
	if err != nil {
		return err
	}
	before, err := s.CPU()
	if err != nil {
		return err
	}
	if err := c.talk(ctx); err != nil {
		return err
	}
	after, err := s.CPU()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d visitors in one room, %d of them talk: %d lines of %d bytes, one every %v\n",
		o.Visitors, o.Talkers, o.Lines, o.Size, o.between())
	all, last := quantiles(c.took), quantiles(c.last)
	fmt.Fprintf(out, "from one window to another: median %v, p99 %v, max %v\n", all(0.5), all(0.99), all(1))
	fmt.Fprintf(out, "until the last of all has it: median %v, p99 %v\n", last(0.5), last(0.99))
	fmt.Fprintf(out, "server: CPU %v a delivery, %d bytes of resident memory a visitor\n",
		(after-before)/time.Duration(len(c.took)), (full-empty)/o.Visitors)
	if p99 := all(0.99); o.Max > 0 && p99 > o.Max {
		return fmt.Errorf("the p99, %v, is above %v", p99, o.Max)
	}
	return nil
}

// between is the time between two lines of all talkers.
func (o Options) between() time.Duration { return o.Every / time.Duration(o.Talkers) }

// quantiles returns a function for the quantiles of all.
func quantiles(all []time.Duration) func(q float64) time.Duration {
	slices.Sort(all)
	return func(q float64) time.Duration {
		return all[min(int(q*float64(len(all))), len(all)-1)].Round(10 * time.Microsecond)
	}
}
