// Command watch runs a program, and prints what happens in a directory until the program has ended. A scheduler watches two
// descriptors for that: the directory's, of inotify(7), and the program's, of pidfd_open(2). So it needs Linux.
//
//	go run ./examples/watch /tmp sh -c 'touch /tmp/a; rm /tmp/a'
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(flag.CommandLine.Output(), "usage: watch directory program argument...") }
	cli.Parse("watch", func() error {
		if flag.NArg() < 2 {
			return errors.New("missing directory or program")
		}
		return nil
	})
	if err := watch(flag.Arg(0), flag.Args()[1:]); err != nil {
		cli.Exit("watch", err, 1)
	}
}

func watch(path string, program []string) error {
	var outcome error // of the program
	start := func(s *act.Scheduler) error {
		files, err := watchFolder(s, path)
		if err != nil {
			return err
		}
		return watchChild(s, program, func(err error) {
			outcome = err
			_ = files.Close() // wakes its task, for the last time
		})
	}
	atOnce := shutdown.Policy{Kind: shutdown.Halt, Drop: true} // what a signal does
	err := act.Run(context.Background(), act.Config{Schedulers: 1}, start, monitor.Signals(atOnce))
	return cmp.Or(err, outcome)
}
