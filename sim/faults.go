package sim

import (
	"time"
	"unsafe"
)

// Faults says what goes wrong, and how often. What each does is what a real system may do, no more: code that
// keeps to the rules of package netpoll survives all of it.
type Faults struct {
	// Of calls on connections.
	ShortRead  int // Receive gives less than there is; over TCP a fresh event follows, over Unix sockets none
	ShortWrite int // Send takes less than there is room for; an event tells of room later
	FalseEmpty int // Receive says EAGAIN though something is there; a fresh event follows
	FalseFull  int // Send says EAGAIN though there is room; an event follows
	Reset      int // a segment on its way becomes the end of the connection, anywhere inside of it: ECONNRESET, ETIMEDOUT or EHOSTUNREACH
	CloseError int // Close says EIO; the descriptor is gone all the same

	// Of readiness.
	Spurious  int // an event without a cause
	Delayed   int // an event is told later
	Duplicate int // an event is told twice
	Shuffled  int // events of a batch come in another order
	Stale     int // an event for a descriptor that is closed is told after its number is in use again
	Interrupt int // a Wait is cut short by a signal

	// Of accepting and connecting.
	Aborted     int // Accept says ECONNABORTED or another of accept(2)'s errors of a connection, which is gone
	NoFiles     int // Accept says EMFILE, ENFILE, ENOBUFS or ENOMEM for a while; the connection stays in the backlog
	NoMemory    int // registering a descriptor fails with ENOMEM or ENOSPC
	Refused     int // a connect is refused though somebody listens
	Unreachable int // a connect fails with ENETUNREACH or EHOSTUNREACH
	TimedOut    int // a connect ends with ETIMEDOUT after 127 s

	// Of the links.
	Slow int // a segment takes up to a second
	Clog int // nothing arrives in one direction for up to 10 s

	// Of time, and of the work off the thread.
	WallJump int // the wall clock jumps by up to a day, forwards or backwards
	Late     int // an offloaded function runs up to a minute late
	Never    int // an offloaded function does not run before the world is healed
	Pressed  int // a step finds the inbox of its scheduler full
}

// Anything is the Faults of a bad day: everything happens, most of it seldom. What can happen once in the life of
// a connection is more frequent than what can happen with each of its segments.
func Anything() Faults {
	const once, seldom, rare = often / 50, often / 200, often / 5000
	return Faults{
		ShortRead: often / 20, ShortWrite: often / 20, FalseEmpty: often / 50, FalseFull: often / 50,
		Reset: rare, CloseError: seldom,
		Spurious: often / 50, Delayed: often / 50, Duplicate: often / 50, Shuffled: often / 10, Stale: often / 20, Interrupt: seldom,
		Aborted: once, NoFiles: once, NoMemory: once, Refused: once, Unreachable: once, TimedOut: seldom,
		Slow: seldom, Clog: rare,
		WallJump: rare, Late: seldom, Never: seldom, Pressed: seldom,
	}
}

// all are the weights, with their names, in order.
func (f *Faults) all() []named {
	return []named{
		{"short read", &f.ShortRead}, {"short write", &f.ShortWrite}, {"false empty", &f.FalseEmpty},
		{"false full", &f.FalseFull}, {"reset", &f.Reset}, {"close error", &f.CloseError},
		{"spurious event", &f.Spurious}, {"delayed event", &f.Delayed}, {"duplicate event", &f.Duplicate},
		{"shuffled events", &f.Shuffled}, {"stale event", &f.Stale}, {"interrupted wait", &f.Interrupt},
		{"aborted connection", &f.Aborted}, {"no descriptors", &f.NoFiles}, {"no memory", &f.NoMemory},
		{"refused connect", &f.Refused}, {"unreachable", &f.Unreachable}, {"connect timed out", &f.TimedOut},
		{"slow segment", &f.Slow}, {"clogged link", &f.Clog},
		{"wall clock jump", &f.WallJump}, {"late offload", &f.Late}, {"lost offload", &f.Never}, {"full inbox", &f.Pressed},
	}
}

// index is the place of a weight among all of them.
func (f *Faults) index(weight *int) int64 {
	return int64((uintptr(unsafe.Pointer(weight)) - uintptr(unsafe.Pointer(f))) / unsafe.Sizeof(*weight))
}

type named struct {
	name   string
	weight *int
}

// faultNames are in the order of Faults.index; the last is for a scenario's own.
var faultNames = func() (names []string) {
	for _, n := range new(Faults).all() {
		names = append(names, n.name)
	}
	return append(names, "the scenario's own")
}()

// swarm switches off about half of them: a history in which two faults never meet shows what one of
// them hides in every history in which they do.
func (f Faults) swarm(d *dice) Faults {
	for _, n := range f.all() {
		if d.below(2) == 0 {
			*n.weight = 0
		}
	}
	return f
}

// What a segment takes on its way: one in 64 is in the tail.
const (
	latencyLow  = 20 * time.Microsecond
	latencyHigh = 300 * time.Microsecond
	latencyTail = 30 * time.Millisecond
)
