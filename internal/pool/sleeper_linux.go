package pool

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sleeper is where one goroutine waits, by futex(2): for one of the states below.
type sleeper struct{ state atomic.Uint32 }

const (
	nobody uint32 = iota
	waiting
	woken
)

// FUTEX_WAIT and FUTEX_WAKE of linux/futex.h, with FUTEX_PRIVATE_FLAG.
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

// wake wakes the goroutine that waits, and reports whether there is one. Any goroutine.
func (s *sleeper) wake() bool {
	if !s.state.CompareAndSwap(waiting, woken) {
		return false
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.state)), futexWake, 1, 0, 0, 0)
	return true
}

// wait waits for wake, and reports whether it has come in time. It does not wait if another goroutine does.
func (s *sleeper) wait(ns int64) bool {
	if !s.state.CompareAndSwap(nobody, waiting) {
		return false
	}
	limit := unix.NsecToTimespec(ns)
	for s.state.Load() == waiting {
		_, _, errno := syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.state)), futexWait, uintptr(waiting),
			uintptr(unsafe.Pointer(&limit)), 0, 0)
		if errno == unix.ETIMEDOUT && s.state.CompareAndSwap(waiting, nobody) {
			return false
		}
	}
	s.state.Store(nobody)
	return true
}
