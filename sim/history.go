package sim

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// history is a hash of all events, and the last events as text.
type history struct {
	hash   uint64
	events uint64
	last   []line
}

// line is one event. Its text is made only when it is printed.
type line struct {
	number uint64
	at     time.Duration
	what   eventKind
	who    subject
	a, b   int64
}

// subject is the subject of an event. Unlike a pointer, its number is the same in every run of a seed.
type subject interface {
	fmt.Stringer
	number() uint64
}

// eventKind is a kind of event, as the format of its text. The arguments are who, a and b.
type eventKind string

const (
	turnBegins   eventKind = "turn of %[1]v"
	turnEnds     eventKind = "%[1]v returns %[2]v"
	isSpawned    eventKind = "%[1]v is spawned"
	isWoken      eventKind = "%[1]v is woken"
	isNotified   eventKind = "%[1]v is notified of an order"
	isEnded      eventKind = "%[1]v ends"
	passBegins   eventKind = "%[1]v: pass"
	clockJumps   eventKind = "nothing can run: %[2]v pass"
	fdReceives   eventKind = "%[1]v receives %[2]v of %[3]d"
	fdSends      eventKind = "%[1]v sends %[2]v of %[3]d"
	fdAccepts    eventKind = "%[1]v accepts %[2]v"
	fdIsReady    eventKind = "%[1]v is ready: %[2]v"
	fdWasReady   eventKind = "too late: %[1]v is ready: %[2]v"
	bytesArrive  eventKind = "%[2]d bytes arrive at %[1]v, %[3]d unread"
	packetDrops  eventKind = "%[1]v drops a packet of %[2]d bytes: there is no room"
	endArrives   eventKind = "the end arrives at %[1]v"
	resetArrives eventKind = "a reset arrives at %[1]v"
	faultAt      eventKind = "fault at %[1]v: %[2]v"
	faultHappens eventKind = "fault: %[2]v"
	isDialled    eventKind = "%[1]v begins to connect"
	isQueued     eventKind = "connection %[2]d waits at %[1]v, which has a backlog of %[3]d"
	isResumed    eventKind = "%[1]v goes on"

	clientReads  eventKind = "%[1]v: reads %[2]v"
	clientWrites eventKind = "%[1]v: writes %[2]v"
	clientEnds   eventKind = "%[1]v: closes its write side: %[2]v"
	clientCloses eventKind = "%[1]v: closes"
	clientAborts eventKind = "%[1]v: aborts"
)

func (l *line) String() string {
	a := any(l.a)
	switch l.what {
	case turnEnds:
		a = act.Directive(l.a)
	case clockJumps:
		a = time.Duration(l.a)
	case fdIsReady, fdWasReady:
		a = netpoll.Ready(l.a)
	case faultHappens, faultAt:
		a = fault(l.a)
	default:
		if l.a < 0 { // what a call returned: see returned
			a = syscall.Errno(-l.a)
		}
	}
	return fmt.Sprintf(string(l.what), l.who, a, l.b)
}

// returned encodes the result of a call: n, or the errno as a negative number. The end of a stream is 0, as in the system call.
func returned(n int, err error) int64 {
	switch e := err.(type) {
	case nil:
		return int64(n)
	case syscall.Errno:
		return -int64(e)
	}
	return 0
}

// note records an event.
func (h *history) note(at time.Duration, what eventKind, who subject, a, b int64) {
	h.events++
	id := uint64(0)
	if who != nil {
		id = who.number()
	}
	h.content([]byte(what))
	for _, x := range [...]uint64{uint64(at), id, uint64(a), uint64(b)} {
		h.hash = mix(h.hash ^ x)
	}
	h.last[h.events%uint64(len(h.last))] = line{h.events, at, what, who, a, b}
}

// content adds bytes to the hash.
func (h *history) content(p []byte) {
	x := h.hash
	for ; len(p) >= 8; p = p[8:] {
		x = mix(x ^ binary.LittleEndian.Uint64(p))
	}
	for _, b := range p {
		x = mix(x ^ uint64(b))
	}
	h.hash = x
}

func mix(x uint64) uint64 {
	x *= 0x9E3779B97F4A7C15 // 2⁶⁴ by the golden ratio
	return x ^ x>>29
}

// tail returns the last events, the newest last, with their numbers in the whole history.
func (h *history) tail() string {
	var b strings.Builder
	for i := range h.last {
		if l := &h.last[(h.events+uint64(i)+1)%uint64(len(h.last))]; l.number > 0 {
			fmt.Fprintf(&b, "%8d %14v  %s\n", l.number, l.at, l)
		}
	}
	return b.String()
}
