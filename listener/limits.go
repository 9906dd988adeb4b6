package listener

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/monitor"
)

// Limits bounds the memory and the time that a connection may take. The zero Limits is good for servers: see its fields.
type Limits struct {
	// Read bounds the unread bytes of a connection: no more are received, and a Peek of more fails with ErrTooLong. In
	// bytes; 0 means 64 KiB.
	Read int
	// High and Low are the water marks of the output queue, in bytes. At High, Write returns act.Blocked; at Low, the
	// task is woken. 0 means 64 KiB for High, and High/4 for Low, which must be less than High. For a peer that does not
	// read, at most High and the 4 KiB gathered in a turn are queued. Push queues whole messages up to High.
	High, Low int
	// Linger bounds how long a closed connection may take to send its last bytes and to see the peer close. 0 means 5
	// s.
	Linger time.Duration
	// ReceiveBuffer and SendBuffer are the sizes of the kernel's buffers for the connection, in bytes (SO_RCVBUF,
	// SO_SNDBUF), in addition to the other bounds. The kernel reduces sizes that are too large, and Linux doubles them.
	// 0 leaves them to the kernel, which lets TCP buffers grow to some MB. [Connect] and the services of package
	// service set them; they have no effect on a Conn that exists.
	ReceiveBuffer, SendBuffer int
	// Conns is the number of connections for each one that a service accepts: itself and the ones that its action
	// dials, so 2 for a proxy. Only the default of MaxConns depends on it: see service.Listener. 0 means 1.
	Conns int
}

// check returns what is wrong with l.
func (l Limits) check() error {
	if min(l.Read, l.High, l.Low, l.ReceiveBuffer, l.SendBuffer, l.Conns) < 0 || l.Linger < 0 {
		return fmt.Errorf("listener: Limits with a negative bound: %+v", l)
	}
	if high := cmp.Or(l.High, defaultHigh); cmp.Or(l.Low, high/4) >= high { // Write would block and be woken for ever
		return fmt.Errorf("listener: Limits whose Low is not below High: %+v", l)
	}
	return nil
}

const defaultHigh = 64 << 10

// Resolved returns l with the defaults in place of zeros. It fails if a bound is negative, or Low is not
// below High. Any goroutine.
func (l Limits) Resolved() (Limits, error) {
	if err := l.check(); err != nil {
		return l, err
	}
	l.Read = cmp.Or(l.Read, 64<<10)
	l.High = cmp.Or(l.High, defaultHigh)
	l.Low = cmp.Or(l.Low, l.High/4)
	l.Linger = cmp.Or(l.Linger, 5*time.Second)
	l.Conns = cmp.Or(l.Conns, 1)
	return l, nil
}

// settings are common to the Conns of one service, or of one kind, on a scheduler: kept here and not in each.
type settings struct {
	limits  Limits
	cache   *cache
	service any // see internals.Service
}

func settingsOf(s *act.Scheduler, l Limits, service any) *settings {
	l, err := l.Resolved()
	if err != nil {
		panic(err.Error())
	}
	h := caches.Get(s)
	if i := slices.IndexFunc(h.known, func(x *settings) bool { return x.limits == l && x.service == service }); i >= 0 {
		return h.known[i]
	}
	if len(h.known) == mostKnown {
		h.known = slices.Delete(h.known, 0, 1)
	}
	h.known = append(h.known, &settings{l, h, service})
	return h.known[len(h.known)-1]
}

// NewConn returns a connection over stream, which must belong to the scheduler s. From then on the Conn owns stream.
// Programs rarely need it: services and [Connect] make Conns. It panics if [Limits.Resolved] fails.
func NewConn(s *act.Scheduler, stream monitor.Stream, l Limits) *Conn {
	return &Conn{stream: stream, settings: settingsOf(s, l, nil)}
}

// cache is what all connections of a scheduler share: buffers structs that are not in use, and small buffers. A hundred
// thousand connections at rest need none of them.
type cache struct {
	s      *act.Scheduler
	budget *budget.Budget
	known  []*settings // the latest: a thousand connections with the same Limits have one
	idle   []*buffers
	small  [][]byte
	file   []byte // what copyFile reads into
}

var caches = act.NewLocal(func(s *act.Scheduler) *cache { return &cache{s: s, budget: budget.Of(s)} })

const (
	gathered = 4 << 10 // how much Write gathers, and the size of a small buffer
	kept     = 64      // how many of each are kept
	// mostKnown is more than the services and kinds of dialled connections that a program usually has.
	mostKnown = 64
)

func (h *cache) takeBuffers(c *Conn) *buffers {
	if len(h.idle) == 0 {
		h.idle = append(h.idle, &buffers{cache: h})
	}
	n := len(h.idle) - 1
	b := h.idle[n]
	h.idle = h.idle[:n]
	b.c = c
	return b
}

func (h *cache) giveBuffers(b *buffers) {
	if len(h.idle) < kept {
		b.c, b.lent, b.gather, b.shared = nil, nil, b.gather[:0], nil
		if b.buffer != nil {
			b.own, b.buffer = nil, nil
		}
		b.read, b.write = 0, 0
		if b.account.Owner != nil {
			b.account.Owner = nil
		}
		h.idle = append(h.idle, b)
	}
}

func (h *cache) takeBuffer() []byte {
	if n := len(h.small); n > 0 {
		b := h.small[n-1]
		h.small = h.small[:n-1]
		return b
	}
	return make([]byte, 0, gathered)
}

func (h *cache) giveBuffer(b []byte) {
	race.Spoil(b[:cap(b)]) // see poison
	if cap(b) == gathered && len(h.small) < kept {
		h.small = append(h.small, b[:0])
	}
}
