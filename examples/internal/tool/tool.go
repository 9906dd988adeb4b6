// Package tool runs the examples that are not servers: they work until nothing is left to do. Servers use package program.
package tool

import (
	"context"
	"errors"
	"os"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

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
		cli.Exit(name, err, 1)
	}
	if failed {
		os.Exit(1)
	}
}
