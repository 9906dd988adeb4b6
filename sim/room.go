package sim

import (
	"time"

	"github.com/daimon-go/daimon/netpoll"
)

// A service that has no place or no descriptor for a client that waits may close a connection that has been idle: see
// EvictAfter of service.Listener. A kernel sees which connections were closed for that.

const (
	// idleFor is the default of EvictAfter, less what the clock of a socket is too coarse for.
	idleFor = 500*time.Millisecond - 2*time.Millisecond
	// soon is how long after it has found a client waiting a service closes a connection.
	soon = 10 * time.Millisecond
)

// lack is what a service had not enough of when it has found a client waiting.
type lack struct {
	failed time.Duration // when an accept has failed for want of a descriptor or of memory
	short  time.Duration // when a client was waiting as well
	full   time.Duration // when a client was waiting, and the service had
	conns  int           // so many connections
}

// crowded is called when a service has found that a client waits at l, in the turn in which it could not accept it.
func (k *kernel) crowded(l *listening) {
	x, now, conns := &k.lack, k.w.now, 0
	for _, f := range k.files {
		if f != nil && f.from != nil && f.from.addr == l.addr && f.from.path == l.path {
			conns++
		}
	}
	switch {
	case x.failed == now:
		x.short = now
	case conns >= x.conns || now > x.full+soon:
		x.full, x.conns = now, conns
	}
}

// moved records that n bytes have gone either way. What is sent after a rest may be the last words of TLS.
func (f *file) moved(n int, sent bool) {
	now := f.k.w.now
	switch {
	case n <= 0:
		return
	case !sent:
		f.rested = 0
	case now >= f.since+idleFor:
		f.rested = now
	}
	f.since = now
}

// ends is called when the server ends its side of a connection. The first call decides whether that may have made room.
func (f *file) ends() {
	c, x, now := f.end.c, &f.k.lack, f.k.w.now
	if f.from == nil || c.left {
		return
	}
	c.left = true
	idle := now >= f.since+idleFor || f.rested > 0 && now <= f.rested+soon
	unread := f.end.unread() > 0 && f.ownReg.reported&netpoll.In != 0
	if !idle || unread {
		return
	}
	c.spared = now <= x.short+soon
	if now <= x.full+soon {
		c.crowd = x.conns
	}
}

// MadeRoom reports whether the server may have closed the client's connection to make room for another one, as a service
// with that MaxConns does: the connection had been idle for half a second, another client was waiting, and there were
// MaxConns connections. Give it to [World.Excuse]; a fault that leaves no descriptors needs no excuse.
func (c *Client) MadeRoom(maxConns int) bool {
	return c.end != nil && maxConns > 0 && c.end.c.crowd >= maxConns
}
