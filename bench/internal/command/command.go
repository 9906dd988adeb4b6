// Package command is the frame of the programs that measure.
package command

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main runs run until it is done, or until SIGINT or SIGTERM ends its context, and exits: 1 after an error,
// 2 when the flags, already parsed, are not valid. The rule then says what would be valid.
func Main(name string, valid bool, rule string, run func(context.Context) error) {
	if !valid || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s: %s, and there are no arguments but flags\n", name, rule)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
