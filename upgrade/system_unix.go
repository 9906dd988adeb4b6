//go:build unix

package upgrade

import (
	"os"
	"syscall"
)

// usual is the signal that starts an upgrade by default.
var usual os.Signal = syscall.SIGUSR2

func closeOnExec(fd int) { syscall.CloseOnExec(fd) }
