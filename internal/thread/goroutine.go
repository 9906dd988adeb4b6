package thread

import "runtime"

// goroutine returns the number of the calling goroutine. It is ID where there is no number of the thread, and compiled
// everywhere so that it is tested.
func goroutine() uint64 {
	var line [64]byte
	return number(line[:runtime.Stack(line[:], false)])
}

// number reads a goroutine's number from the first line of its stack trace, "goroutine 12 [running]:". The form is not
// promised, though net/http's tests and golang.org/x/net/http2 have relied on it since 2014: another one panics.
func number(trace []byte) uint64 {
	const before = "goroutine "
	var id uint64
	if len(trace) > len(before) && string(trace[:len(before)]) == before {
		for _, c := range trace[len(before):] {
			if c < '0' || c > '9' {
				break
			}
			id = id*10 + uint64(c-'0')
		}
	}
	if id == 0 {
		panic("thread: runtime.Stack no longer begins with the goroutine's number")
	}
	return id
}
