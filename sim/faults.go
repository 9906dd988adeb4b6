package sim

import (
	"os"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// Faults says which faults happen, and how often. Most tests use [Anything], as [Test] does. A weight of n means n out
// of 65,536 times that the fault could happen, and 0 means never. A real system may do each of them, so correct code
// survives all. For each fault there is a bug that no other fault shows: see testdata/mutants.
type Faults struct {
	// Of calls on connections.
	ShortRead  int // Receive returns less than has arrived; over TCP another event follows, over Unix sockets none
	ShortWrite int // Send takes less than there is room for; an event follows when there is room
	FalseEmpty int // Receive returns EAGAIN although bytes have arrived; another event follows
	FalseFull  int // Send returns EAGAIN although there is room; another event follows
	Reset      int // instead of a segment, or a part of it, the end of the connection arrives: ECONNRESET, ETIMEDOUT or EHOSTUNREACH
	CloseError int // Close returns EIO; the descriptor is closed all the same

	// Of readiness.
	Spurious  int // an event without a cause
	Delayed   int // an event is late
	Duplicate int // an event is reported twice
	Stale     int // an event of a closed descriptor is reported after its number is in use again

	// Of accepting and connecting.
	Aborted  int // Accept loses a connection and returns ECONNABORTED or another error that accept(2) lists for it
	NoFiles  int // Accept returns EMFILE, ENFILE, ENOBUFS or ENOMEM for a while; an idle connection may be closed for it
	NoMemory int // registering a descriptor fails with ENOMEM or ENOSPC
	Refused  int // a connect fails although a server listens: with ECONNREFUSED, ENETUNREACH or EHOSTUNREACH
	TimedOut int // a connect fails with ETIMEDOUT after 127 s

	// Of the links.
	Slow int // a segment takes up to a second
	Clog int // nothing arrives in one direction for up to 10 s

	// Of time, and of work on other goroutines.
	WallJump int // the wall clock jumps by up to a day, forwards or backwards
	Late     int // an offloaded function runs up to a minute late
	Pressed  int // the inbox of a scheduler is full for up to 5 ms: what is posted finds no room
}

// kinds is the number of kinds of Faults.
const kinds = int(unsafe.Sizeof(Faults{}) / unsafe.Sizeof(int(0)))

// Anything returns Faults in which every fault happens, most of them seldom. Faults that can happen once in the life of
// a connection are more frequent than faults of single segments.
func Anything() Faults {
	const once, seldom, rare = often / 50, often / 200, often / 5000
	return Faults{
		ShortRead: often / 20, ShortWrite: often / 20, FalseEmpty: often / 50, FalseFull: often / 50,
		Reset: rare, CloseError: seldom,
		Spurious: often / 50, Delayed: often / 50, Duplicate: often / 50, Stale: often / 20,
		Aborted: once, NoFiles: once, NoMemory: once, Refused: once, TimedOut: seldom,
		Slow: seldom, Clog: rare,
		WallJump: rare, Late: seldom, Pressed: seldom,
	}
}

// all returns the weights with their names, in the order of the fields.
func (f *Faults) all() []named {
	return []named{
		{"short read", &f.ShortRead}, {"short write", &f.ShortWrite}, {"false empty", &f.FalseEmpty},
		{"false full", &f.FalseFull}, {"reset", &f.Reset}, {"close error", &f.CloseError},
		{"spurious event", &f.Spurious}, {"delayed event", &f.Delayed}, {"duplicate event", &f.Duplicate},
		{"stale event", &f.Stale}, {"aborted connection", &f.Aborted}, {"no descriptors", &f.NoFiles}, {"no memory", &f.NoMemory},
		{"refused connect", &f.Refused}, {"connect timed out", &f.TimedOut},
		{"slow segment", &f.Slow}, {"clogged link", &f.Clog},
		{"wall clock jump", &f.WallJump}, {"late offload", &f.Late}, {"full inbox", &f.Pressed},
	}
}

// index returns the index of a weight in all.
func (f *Faults) index(weight *int) int64 {
	return int64((uintptr(unsafe.Pointer(weight)) - uintptr(unsafe.Pointer(f))) / unsafe.Sizeof(*weight))
}

type named struct {
	name   string
	weight *int
}

// faultNames are the names by index. The last is that of the scenario's own faults.
var faultNames = func() (names []string) {
	for _, n := range new(Faults).all() {
		names = append(names, n.name)
	}
	return append(names, "the scenario's own")
}()

// swarm returns f with about half of the faults off, and without the faults that SIM_WITHOUT names. A fault may hide
// what another one shows in every history in which both happen.
func (f Faults) swarm(d *dice) Faults {
	without := strings.Split(os.Getenv("SIM_WITHOUT"), ",")
	for _, n := range f.all() {
		if d.below(2) == 0 || slices.Contains(without, n.name) {
			*n.weight = 0
		}
	}
	return f
}

// The latency of a segment is between low and high. For one segment in 64 it is between high and tail.
const (
	latencyLow  = 20 * time.Microsecond
	latencyHigh = 300 * time.Microsecond
	latencyTail = 30 * time.Millisecond
)
