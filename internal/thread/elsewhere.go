//go:build !linux

package thread

import (
	"errors"
	"fmt"
	"runtime"
)

// ID returns the number of the calling goroutine, since Go has no portable call for the thread's. For goroutines that are
// locked to their threads that is as good. It formats a stack trace of one line, which takes a microsecond.
func ID() uint64 { return goroutine() }

// Bind returns an error that wraps errors.ErrUnsupported. The system goes on moving the thread between CPUs.
func Bind(cpu int) error {
	return fmt.Errorf("thread: bind to CPU %d: no call for it on %s: %w", cpu, runtime.GOOS, errors.ErrUnsupported)
}

// CPUs returns 0 to runtime.NumCPU()-1: as many as this process may use, though not the system's numbers of them.
func CPUs() []int { return upTo(runtime.NumCPU()) }

// LeastUsed returns cpus: nothing is known of their use.
func LeastUsed(cpus []int) []int { return cpus }
