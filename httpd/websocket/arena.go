package websocket

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/race"
)

// arena is where a scheduler's Conns unmask the bytes that they lend in a turn: bytes that listener.Conn lends must not
// be changed. So an idle Conn has no buffer.
type arena struct {
	s     *act.Scheduler
	block []byte
	used  bool   // in this turn
	space []byte // for a message that is being compressed
	head  [frame.MaxHeader]byte

	received, sent, dropped uint64 // messages; dropped ones were pushed
}

// Counts implements facts.Counter.
func (a *arena) Counts(add func(name string, n uint64)) {
	add("websocket_received_total", a.received)
	add("websocket_sent_total", a.sent)
	add("websocket_dropped_total", a.dropped)
}

var arenas = act.NewLocal(func(s *act.Scheduler) *arena { return &arena{s: s} })

// kept is the size of the block that outlives a turn.
const kept = 64 << 10

// take returns n bytes that are the caller's until the turn ends. A block that is full is left to the collector: all of
// it may be lent.
func (a *arena) take(n int) []byte {
	if !a.used {
		a.used = true
		a.s.Internals().AtTurnEnd(a)
	}
	if n > cap(a.block)-len(a.block) {
		a.block = make([]byte, 0, max(n, kept))
	}
	from := len(a.block)
	a.block = a.block[:from+n]
	return a.block[from : from+n : from+n]
}

// room returns the memory that take can return next, and is for appending: what fits is then taken.
func (a *arena) room() []byte {
	if cap(a.block)-len(a.block) < kept/16 {
		a.block = make([]byte, 0, kept)
	}
	return a.block[len(a.block):]
}

// keep makes p the space, unless it is large.
func (a *arena) keep(p []byte) {
	if cap(p) <= kept {
		a.space = p[:0]
	}
}

// TurnEnd takes back lent bytes. With the race detector they are overwritten, so that tests notice code that keeps
// them.
func (a *arena) TurnEnd() {
	a.used = false
	if race.Enabled {
		for i := range a.block {
			a.block[i] = 0xDB
		}
	}
	if a.block = a.block[:0]; cap(a.block) > kept {
		a.block = nil
	}
}
