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

// eventKind is a kind of event.
type eventKind uint8

const (
	turnBegins eventKind = iota
	turnEnds
	isSpawned
	isWoken
	isNotified
	isEnded
	passBegins
	clockJumps
	fdReceives
	fdSends
	fdAccepts
	fdCalls
	fdIsReady
	bytesArrive
	endArrives
	resetArrives
	clientDoes
	faultHappens
	isDialled
	isQueued
	isResumed
	eventKinds
)

// phrases are the texts of the events. Each kind has its own meaning of a and b.
var phrases = [eventKinds]func(who subject, a, b int64) string{
	turnBegins: func(who subject, _, _ int64) string { return fmt.Sprintf("turn of %v", who) },
	turnEnds:   func(who subject, a, _ int64) string { return fmt.Sprintf("%v returns %v", who, act.Directive(a)) },
	isSpawned:  func(who subject, _, _ int64) string { return fmt.Sprintf("%v is spawned", who) },
	isWoken:    func(who subject, _, _ int64) string { return fmt.Sprintf("%v is woken", who) },
	isNotified: func(who subject, _, _ int64) string { return fmt.Sprintf("%v is notified of an order", who) },
	isEnded:    func(who subject, _, _ int64) string { return fmt.Sprintf("%v ends", who) },
	passBegins: func(who subject, _, _ int64) string { return fmt.Sprintf("%v: pass", who) },
	clockJumps: func(_ subject, a, _ int64) string { return fmt.Sprintf("nothing can run: %v pass", time.Duration(a)) },
	fdReceives: func(who subject, a, b int64) string { return fmt.Sprintf("%v receives %s of %d", who, result(a), b) },
	fdSends:    func(who subject, a, b int64) string { return fmt.Sprintf("%v sends %s of %d", who, result(a), b) },
	fdAccepts:  func(who subject, a, _ int64) string { return fmt.Sprintf("%v accepts %s", who, result(a)) },
	fdCalls: func(who subject, a, b int64) string {
		if a == 0 {
			return fmt.Sprintf("%v: %v", who, call(b))
		}
		return fmt.Sprintf("%v: %v: %s", who, call(b), result(a))
	},
	fdIsReady: func(who subject, a, late int64) string {
		return fmt.Sprintf("%s%v is ready: %v", [...]string{"", "too late: "}[late], who, netpoll.Ready(a))
	},
	bytesArrive: func(who subject, a, b int64) string {
		return fmt.Sprintf("%d bytes arrive at %v, %d unread", a, who, b)
	},
	endArrives:   func(who subject, _, _ int64) string { return fmt.Sprintf("the end arrives at %v", who) },
	resetArrives: func(who subject, _, _ int64) string { return fmt.Sprintf("a reset arrives at %v", who) },
	clientDoes:   func(who subject, a, b int64) string { return fmt.Sprintf("%v: %v %s", who, action(b), result(a)) },
	faultHappens: func(who subject, a, _ int64) string {
		if who == nil {
			return fmt.Sprintf("fault: %v", fault(a))
		}
		return fmt.Sprintf("fault at %v: %v", who, fault(a))
	},
	isResumed: func(who subject, _, _ int64) string { return fmt.Sprintf("%v goes on", who) },
	isDialled: func(who subject, _, _ int64) string { return fmt.Sprintf("%v begins to connect", who) },
	isQueued: func(who subject, a, b int64) string {
		return fmt.Sprintf("connection %d waits at %v, which has a backlog of %d", a, who, b)
	},
}

// result is the text of what a call returned: a number of bytes or a descriptor, or if negative an errno.
func result(a int64) string {
	if a < 0 {
		return syscall.Errno(-a).Error()
	}
	return fmt.Sprint(a)
}

// note records an event.
func (h *history) note(at time.Duration, w eventKind, who subject, a, b int64) {
	h.events++
	x := h.hash ^ uint64(at)
	id := uint64(0)
	if who != nil {
		id = who.number()
	}
	x = mix(x ^ uint64(w)<<56 ^ id)
	x = mix(x ^ uint64(a))
	h.hash = mix(x ^ uint64(b))
	h.last[h.events%uint64(len(h.last))] = line{h.events, at, w, who, a, b}
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
			fmt.Fprintf(&b, "%8d %14v  %s\n", l.number, l.at, phrases[l.what](l.who, l.a, l.b))
		}
	}
	return b.String()
}
