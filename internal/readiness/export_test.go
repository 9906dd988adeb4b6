package readiness

import "unsafe"

// SocketSize is what a connection costs below its Conn.
const SocketSize = unsafe.Sizeof(Socket{})

// Lent is how much is lent in the present turn.
func Lent(e *Engine) int {
	e.loan()
	return e.lent
}

// Busy is how many sockets have a busy half, and what their queues hold in memory.
func Busy(e *Engine) (sockets, memory int) {
	for _, sl := range e.slots {
		if k, ok := sl.watcher.(*Socket); ok && k.out != nil {
			sockets++
			memory += cap(k.out.queue)
		}
	}
	return sockets, memory
}

// Starving is how many acceptors wait for a descriptor.
func Starving(e *Engine) int { return len(e.starving) }

// ClosePlainly is the close that Close is not.
func ClosePlainly(s *Socket) {
	k := s
	k.release(k.source.e.os.Close)
}

// IsLingering tells whether s was closed and is not gone yet.
func IsLingering(s *Socket) bool { return s.state&lingering != 0 }

// Lingering is how many are.
func Lingering(e *Engine) (n int) {
	for o := e.lingering.first; o != nil; o = o.next {
		n++
	}
	return n
}
