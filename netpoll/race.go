//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"syscall"

	"github.com/daimon-go/daimon/internal/race"
)

// release tells the race detector that this goroutine's actions so far happen before other goroutines' actions after
// their next receive. Only Write and Read of package syscall can tell it so that it also holds for peers of package
// net, which calls them. Write does so before the system call, so that a failing call is enough.
func release() {
	if race.Enabled {
		_, _ = syscall.Write(-1, nil)
	}
}
