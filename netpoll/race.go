//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netpoll

import (
	"syscall"

	"github.com/daimon-go/daimon/internal/race"
)

// release tells the race detector that what this goroutine has done happens before what other goroutines do after their
// next receive. Only Write and Read of package syscall can tell it so that it also holds for peers of package net, which
// calls them. Write does so before it calls the system, so that one that fails is enough.
func release() {
	if race.Enabled {
		_, _ = syscall.Write(-1, nil)
	}
}
