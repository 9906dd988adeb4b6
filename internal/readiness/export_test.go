package readiness

import (
	"unsafe"

	"github.com/daimon-go/daimon/netpoll"
)

// SocketSize is the memory of a connection below its Conn.
const SocketSize = unsafe.Sizeof(Socket{})

// Lent returns how many bytes are lent in the present turn.
func Lent(e *Engine) int {
	e.loans.Room(e.s)
	return e.loans.Lent()
}

// Busy returns how many sockets have an outbound part, and the capacity of their queues.
func Busy(e *Engine) (sockets, memory int) {
	for _, sl := range e.slots {
		if k, ok := sl.watcher.(*Socket); ok && k.out != nil {
			sockets++
			memory += cap(k.out.queue)
		}
	}
	return sockets, memory
}

// Starving returns how many acceptors wait for a descriptor.
func Starving(e *Engine) int { return len(e.starving) }

// Stock returns how many queues are kept for sockets to come, and the capacity of the largest.
func Stock(e *Engine) (n, largest int) {
	for _, b := range e.buffers {
		largest = max(largest, cap(b))
	}
	return len(e.buffers), largest
}

// Reported reports whether an event has said r of s.
func Reported(s *Socket, r netpoll.Ready) bool { return s.ready&r == r }
