// Command fetch connects to two addresses at the same time, reads lines from both until they close, and prints all lines
// sorted. It gives up after five seconds.
//
//	seq 1 2 9 | nc -l 127.0.0.1 7101 -N &
//	seq 2 2 9 | nc -l 127.0.0.1 7102 -N &
//	go run ./examples/fetch -as coroutine 127.0.0.1:7101 127.0.0.1:7102
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

func main() {
	names := strings.Join(slices.Sorted(maps.Keys(forms)), ", ")
	as := flag.String("as", "action", "the `form` of the program: "+names)
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: fetch [-as form] address address")
		flag.PrintDefaults()
	}
	cli.Parse("fetch", func() error {
		switch {
		case forms[*as] == nil:
			return fmt.Errorf("-as must be one of %s: %q", names, *as)
		case flag.NArg() < 2:
			return errors.New("missing address")
		case flag.NArg() > 2:
			return fmt.Errorf("unexpected argument: %q", flag.Arg(2))
		}
		return nil
	})
	var outcome error
	start := func(s *act.Scheduler) error {
		forms[*as](s, flag.Arg(0), flag.Arg(1), func(lines []string, err error) {
			if outcome = err; err == nil {
				_, outcome = fmt.Println(strings.Join(lines, "\n"))
			}
		})
		return nil
	}
	atOnce := shutdown.Policy{Kind: shutdown.Halt, Drop: true} // what a signal does
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, start, monitor.Signals(atOnce))
	if err = cmp.Or(err, outcome); err != nil {
		cli.Exit("fetch", err, 1)
	}
}
