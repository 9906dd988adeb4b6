//go:build unix

// Package cputime has the processor time of this process, for tests and benchmarks.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Used returns what the process has used so far.
func Used(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
