package sim

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Faults says which faults happen, and how often. Most tests use [Anything], as [Test] does. The zero Faults has none. A weight
// of n means n out of 65,536 times that the fault could happen. A real system may do each of them, so correct code survives all.
//
// Of calls on connections:
//
//	short read            a receive returns less than has arrived; over TCP another event follows, over Unix sockets none
//	short write           a send takes less than there is room for; an event follows when there is room
//	false empty           a receive returns EAGAIN although bytes have arrived; another event follows
//	false full            a send returns EAGAIN although there is room; another event follows
//	reset                 in place of a segment, or a part of it, comes ECONNRESET, ETIMEDOUT or EHOSTUNREACH
//	close error           a close returns EIO; the descriptor is closed all the same
//	refused batch         io_uring is refused, as by a filter of system calls: calls are made one by one
//
// Of readiness:
//
//	spurious event        an event without a cause
//	delayed event         an event is late
//	duplicate event       an event is reported twice
//	stale event           an event of a closed descriptor is reported after its number is in use again
//
// Of accepting and connecting:
//
//	aborted connection    accept loses a connection: ECONNABORTED or another error that accept(2) lists for it
//	no descriptors        accept returns EMFILE, ENFILE, ENOBUFS or ENOMEM for a while; an idle connection may be evicted for it
//	no memory             registering a descriptor fails with ENOMEM or ENOSPC
//	refused connect       a connect fails although a server listens: with ECONNREFUSED, ENETUNREACH or EHOSTUNREACH
//	connect timed out     a connect fails with ETIMEDOUT after 127 s
//
// Of the links, of time, and of work on other goroutines:
//
//	lost datagram         a datagram of UDP does not arrive
//	duplicate datagram    a datagram arrives twice
//	reordered datagram    a datagram arrives up to 100 ms late, and later ones overtake it
//	refused datagram      a send fails with ENOBUFS, EMSGSIZE, EPERM or EHOSTUNREACH; on a dialled socket ECONNREFUSED follows
//	slow segment          a segment takes up to a second
//	clogged link          nothing arrives in one direction for up to 10 s
//	wall clock jump       the wall clock jumps by up to a day, forwards or backwards
//	late offload          an offloaded function runs up to a minute late
//	full inbox            the inbox of a scheduler is full for up to 5 ms: what is posted finds no room
type Faults struct{ weights [ofScenario]int }

// fault is a kind of fault. For each there is a bug that no other one shows: see testdata/mutants.
type fault int64

const (
	shortRead fault = iota
	shortWrite
	falseEmpty
	falseFull
	resetLink
	closeError
	refusedBatch
	spurious
	delayed
	duplicate
	stale
	abortedConn
	noDescriptors
	noMemory
	refusedConnect
	timedOut
	lostPacket
	duplicatePacket
	reorderedPacket
	refusedPacket
	slowSegment
	cloggedLink
	wallJump
	lateOffload
	fullInbox
	ofScenario // its own
	kinds
)

var faultNames = [kinds]string{"short read", "short write", "false empty", "false full", "reset", "close error",
	"refused batch", "spurious event", "delayed event", "duplicate event", "stale event", "aborted connection", "no descriptors", "no memory",
	"refused connect", "connect timed out", "lost datagram", "duplicate datagram", "reordered datagram", "refused datagram",
	"slow segment", "clogged link", "wall clock jump", "late offload", "full inbox",
	"the scenario's own"}

func (f fault) String() string { return faultNames[f] }

// Anything returns Faults in which every fault happens, most of them seldom. Faults that can happen once in the life of
// a connection are more frequent than faults of single segments.
func Anything() Faults {
	const once, seldom, rare = often / 50, often / 200, often / 5000
	return Faults{[...]int{
		shortRead: often / 20, shortWrite: often / 20, falseEmpty: often / 50, falseFull: often / 50, resetLink: rare, closeError: seldom,
		refusedBatch: often / 2,
		spurious:     often / 50, delayed: often / 50, duplicate: often / 50, stale: often / 20,
		abortedConn: once, noDescriptors: once, noMemory: once, refusedConnect: once, timedOut: seldom,
		lostPacket: often / 20, duplicatePacket: often / 20, reorderedPacket: often / 20, refusedPacket: often / 20,
		slowSegment: seldom, cloggedLink: rare, wallJump: rare, lateOffload: seldom, fullInbox: seldom,
	}}
}

// With returns Faults like f, in which the faults with these names have this weight, out of 65,536 (see [Faults]). It panics
// on an unknown name.
func (f Faults) With(weight int, names ...string) Faults {
	for _, name := range names {
		i := slices.Index(faultNames[:ofScenario], name)
		if i < 0 {
			panic(fmt.Sprintf("sim: there is no fault %q", name))
		}
		f.weights[i] = weight
	}
	return f
}

// Without returns Faults like f, in which the faults with these names never happen. It panics on an unknown name.
func (f Faults) Without(names ...string) Faults { return f.With(0, names...) }

// swarm returns f with about half of the faults off, and without the faults that SIM_WITHOUT names. A fault may hide
// what another one shows in every history in which both happen.
func (f Faults) swarm(d *dice) Faults {
	for i := range f.weights {
		if d.below(2) == 0 {
			f.weights[i] = 0
		}
	}
	if without := os.Getenv("SIM_WITHOUT"); without != "" {
		return f.Without(strings.Split(without, ",")...)
	}
	return f
}

// The latency of a segment is between low and high. For one segment in 64 it is between high and tail.
const (
	latencyLow  = 20 * time.Microsecond
	latencyHigh = 300 * time.Microsecond
	latencyTail = 30 * time.Millisecond
)
