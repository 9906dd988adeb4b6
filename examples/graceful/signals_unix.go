//go:build unix

package main

import (
	"os"
	"syscall"
)

// signals are the signals that the flags may choose.
var signals = map[string]os.Signal{"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH}
