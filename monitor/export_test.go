package monitor

import (
	"unsafe"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
)

// LastAccepts is how many connections an acceptor still gives after Stop.
var LastAccepts = &lastAccepts

// SocketSize is the memory of a connection below its Conn.
const SocketSize = unsafe.Sizeof(socket{})

// Lent returns how many bytes are lent in the present turn.
func Lent(e engine.Engine) int {
	r := e.(*readiness)
	r.loans.Room(r.s)
	return r.loans.Lent()
}

// Busy returns how many sockets have an outbound part, and the capacity of their queues.
func Busy(e engine.Engine) (sockets, memory int) {
	x := &e.(*readiness).slots
	for k := range x.sockets(0, x.len()) {
		if k.out != nil {
			sockets++
			memory += cap(k.out.queue)
		}
	}
	return sockets, memory
}

// Open returns how many connections are open.
func Open(e engine.Engine) int { return int(e.(*readiness).counts.Open) }

// Starving returns how many acceptors wait for a descriptor.
func Starving(e engine.Engine) int { return len(e.(*readiness).starving) }

// Stock returns how many queues are kept for sockets to come, and the capacity of the largest.
func Stock(e engine.Engine) (n, largest int) {
	for _, b := range e.(*readiness).buffers {
		largest = max(largest, cap(b))
	}
	return len(e.(*readiness).buffers), largest
}

// Reported reports whether an event has said r of s.
func Reported(s Stream, r netpoll.Ready) bool { return s.(*socket).ready&r == r }
