package listener

import (
	"unsafe"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// What the tests measure.
const (
	ConnSize = unsafe.Sizeof(Conn{})
	Gathered = gathered
)

// AtRest reports whether c has no buffers.
func AtRest(c *Conn) bool { return c.buffers == nil }

// Memory returns how many bytes of buffers c holds.
func Memory(c *Conn) int {
	if c.buffers == nil {
		return 0
	}
	return cap(c.buffers.buffer) + cap(c.buffers.gather)
}

// Kept returns how many small buffers and buffers structs the cache of s has.
func Kept(s *act.Scheduler) (buffers, busy int) {
	h := caches.Get(s)
	return len(h.small), len(h.idle)
}

// StreamOf returns the stream of c.
func StreamOf(c *Conn) monitor.Stream { return c.stream }

// LargestKept returns the size of the largest buffer in the cache of s.
func LargestKept(s *act.Scheduler) (size int) {
	for _, b := range caches.Get(s).small {
		size = max(size, cap(b))
	}
	return size
}
