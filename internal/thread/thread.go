// Package thread identifies operating system threads and binds them to CPUs.
//
// A scheduler needs both: objects that belong to one thread must notice a use on another, and on a machine of its own a
// thread that stays on one CPU keeps its caches. Both are meaningful only on a goroutine that has called
// runtime.LockOSThread.
//
//	        ID                      Bind                  CPUs                  LeastUsed
//	Linux   gettid(2)               sched_setaffinity(2)  sched_getaffinity(2)  proc(5)
//	others  the goroutine's number  an error              0 to NumCPU-1         unknown
//
// The package does not lock, start or end threads.
package thread

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine returns the number of the calling goroutine. It is ID where there is no number of the thread, and compiled
// everywhere so that it is tested.
func goroutine() uint64 {
	var line [64]byte
	return number(line[:runtime.Stack(line[:], false)])
}

// number reads a goroutine's number from the first line of its stack trace, "goroutine 12 [running]:". The form is not
// promised, though net/http's tests and golang.org/x/net/http2 have relied on it since 2014: another one panics.
func number(trace []byte) uint64 {
	rest, _ := bytes.CutPrefix(trace, []byte("goroutine "))
	digits, _, _ := bytes.Cut(rest, []byte(" "))
	id, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil || len(rest) == len(trace) {
		panic("thread: runtime.Stack no longer begins with the goroutine's number")
	}
	return id
}

// upTo returns 0 to n-1, as numbers of n CPUs of which nothing else is known.
func upTo(n int) (cpus []int) {
	for cpu := range n {
		cpus = append(cpus, cpu)
	}
	return cpus
}
