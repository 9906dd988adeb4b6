package listener

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/monitor"
)

// Limits bound what a connection may cost. The zero Limits are good for servers.
type Limits struct {
	// Read bounds the unread bytes of a connection: no more are received, and a Peek of more fails with
	// ErrTooLong. 0 means 64 KiB.
	Read int
	// High is the mark of queued bytes from which on Write returns Blocked, and Low, which is less, the one
	// at which it is woken. What is queued for a peer that does not read is at most High and the 4 KiB
	// gathered in a turn. 0 means 64 KiB and a quarter of High.
	High, Low int
	// Linger is how long a closed connection may take to send its last bytes and to see the peer close.
	// 0 means 5 s.
	Linger time.Duration
}

func (l Limits) resolved() Limits {
	if l.Read < 0 || l.High < 0 || l.Low < 0 || l.Linger < 0 {
		panic(fmt.Sprintf("listener: Limits with a negative bound: %+v", l))
	}
	if l.Read == 0 {
		l.Read = 64 << 10
	}
	if l.High == 0 {
		l.High = 64 << 10
	}
	if l.Low == 0 {
		l.Low = l.High / 4
	}
	if l.Low >= l.High {
		panic(fmt.Sprintf("listener: Limits whose Low is not below High: %+v", l)) // Write would block and be woken for ever
	}
	if l.Linger == 0 {
		l.Linger = 5 * time.Second
	}
	return l
}

// Maker makes the Conns of one service on one scheduler: what they have in common is kept here and not
// in each.
type Maker struct {
	limits Limits
	home   *home
}

// NewMaker returns a Maker for s. It panics on a negative limit, and on a Low that is not below High.
func NewMaker(s *act.Scheduler, l Limits) *Maker {
	l, h := l.resolved(), homes.Get(s)
	if h.maker == nil || h.maker.limits != l {
		h.maker = &Maker{l, h}
	}
	return h.maker
}

// Conn returns a connection over stream, which must be of the Maker's scheduler. It owns the stream.
func (m *Maker) Conn(stream monitor.Stream) *Conn { return &Conn{stream: stream, maker: m} }

// home is what all connections of a scheduler share: the busy parts that are not in use, and the small
// buffers. A hundred thousand connections at rest need none of them.
type home struct {
	s       *act.Scheduler
	maker   *Maker // the latest: a thousand connections dialled with the same Limits have one
	idle    []*busy
	buffers [][]byte
	file    []byte // what copyFile reads into
}

var homes = act.NewLocal(func(s *act.Scheduler) *home { return &home{s: s} })

const (
	gathered = 4 << 10 // how much Write gathers, and the size of a small buffer
	kept     = 64      // how many of each are kept
)

func (h *home) takeBusy(c *Conn) *busy {
	if len(h.idle) == 0 {
		h.idle = append(h.idle, &busy{home: h})
	}
	n := len(h.idle) - 1
	b := h.idle[n]
	h.idle = h.idle[:n]
	b.c = c
	return b
}

func (h *home) giveBusy(b *busy) {
	if len(h.idle) < kept {
		b.c, b.lent, b.gather = nil, nil, b.gather[:0]
		if b.buffer != nil {
			b.own, b.buffer = nil, nil
		}
		b.read, b.write, b.fired = 0, 0, 0
		h.idle = append(h.idle, b)
	}
}

func (h *home) takeBuffer() []byte {
	if n := len(h.buffers); n > 0 {
		b := h.buffers[n-1]
		h.buffers = h.buffers[:n-1]
		return b
	}
	return make([]byte, 0, gathered)
}

func (h *home) giveBuffer(b []byte) {
	if race.Enabled {
		spoil(b[:cap(b)]) // see poison
	}
	if cap(b) == gathered && len(h.buffers) < kept {
		h.buffers = append(h.buffers, b[:0])
	}
}
