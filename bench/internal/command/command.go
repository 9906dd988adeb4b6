// Package command has what the main functions of the programs that measure share.
package command

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
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

// Choose returns the indices of the names in list, the value of a flag, where commas separate them. If a name is not
// among all, the error lists the valid names.
func Choose(flag, list string, all []string) (chosen []int, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(all, name)
		if i < 0 {
			return nil, fmt.Errorf("-%s takes some of %s, and not %q", flag, strings.Join(all, ","), name)
		}
		chosen = append(chosen, i)
	}
	return chosen, nil
}
