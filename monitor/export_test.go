package monitor

import "unsafe"

// SocketSize is what a connection costs below its Conn.
const SocketSize = unsafe.Sizeof(socket{})

// Lent is how much is lent in the present turn.
func Lent(e *IO) int {
	e.loan()
	return e.lent
}

// Busy is how many sockets have a busy half, and what their queues hold in memory.
func Busy(e *IO) (sockets, memory int) {
	for _, sl := range e.slots {
		if k, ok := sl.watcher.(*socket); ok && k.out != nil {
			sockets++
			memory += cap(k.out.queue)
		}
	}
	return sockets, memory
}

// Waiting is how many wait for a place in a.
func Waiting(a *Account) int { return int(a.waiting.Load()) }

// Starved is how many wait for a descriptor.
func Starved(e *IO) int { return len(e.starved) }

// ClosePlainly is the close that Close is not.
func ClosePlainly(s Stream) {
	k := s.(*socket)
	k.release(k.source.io.os.Close)
}

// IsLingering tells whether s was closed and is not gone yet.
func IsLingering(s Stream) bool { return s.(*socket).state&lingering != 0 }

// Lingering is how many are.
func Lingering(e *IO) (n int) {
	for o := e.lingering.first; o != nil; o = o.next {
		n++
	}
	return n
}
