//go:build !linux

package thread

import (
	"errors"
	"fmt"
	"runtime"
)

// ID returns the number of the calling goroutine, because Go has no portable call for the thread's. For a goroutine locked
// to its thread the two tell the same things apart, and other goroutines are not told apart by their threads anywhere. It
// formats a stack trace of one line: a microsecond, not for every turn.
func ID() uint64 {
	return goroutine()
}

// Pin reports that this system has no call to tie a thread to a CPU, or none that this package knows; it wraps
// errors.ErrUnsupported. The thread goes on unpinned, which costs speed and nothing else.
func Pin(cpu int) error {
	return fmt.Errorf("thread: pin to CPU %d: no call for it on %s: %w", cpu, runtime.GOOS, errors.ErrUnsupported)
}

// CPUs returns 0 to runtime.NumCPU()-1, as many as this process may use, though not by the system's own numbers. The slice
// is the caller's.
func CPUs() []int {
	return upTo(runtime.NumCPU())
}
