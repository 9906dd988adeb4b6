package process

import (
	"runtime"
	"sync/atomic"
)

// Words and counters are what threads share. The tests replace this file, sync and sync/atomic, so that each step of a
// thread is a choice of the tester: see interleave_test.go.
type (
	word    = atomic.Uint32
	counter = atomic.Int64
)

// backOff is called between two attempts to take a lock that another thread holds.
func backOff() { runtime.Gosched() }
