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
