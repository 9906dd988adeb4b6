package monitor

import (
	"fmt"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/netpoll"
)

// EachState implements engine.Audited.
func (e *readiness) EachState(visit func(engine.State)) {
	for k := range e.slots.sockets(0, e.slots.len()) {
		if k.fd >= 0 {
			visit(engine.State{
				FD: int(k.fd), In: k.ready&netpoll.In != 0 || k.ahead != 0,
				Queued: k.queued(), Gathered: k.state&gathered != 0, Held: k.held(),
				Dialing: k.state&dialing != 0, ForEnd: k.state&forEnd != 0, Half: k.ready&netpoll.PeerClosed != 0,
				Reader: k.reader.Armed(), Writer: k.out != nil && k.out.writers.Waiting(),
			})
		}
	}
}

// Strays implements engine.Audited.
func (e *readiness) Strays() int {
	if e.batch.calls == nil {
		return 0
	}
	n := mostAhead - len(e.batch.spare)
	for k := range e.slots.sockets(0, e.slots.len()) {
		if k.ahead != 0 {
			n--
		}
	}
	return n
}

// Counts implements facts.Counter.
func (e *readiness) Counts(add func(name string, n uint64)) { e.counts.Counts(add) }

// Describe covers all tasks that wait for k.
func (k *socket) Describe(d *act.Description) {
	if k.fd < 0 {
		return
	}
	said := d.Internals()
	said.Peer, said.Stuck = k.peer(), max(said.Stuck, k.stuck().Truncate(time.Millisecond))
	switch {
	case !k.reader.Armed():
	case k.state&dialing != 0:
		d.WaitsFor("the answer to a connect")
	case k.state&forEnd != 0:
		said.Waits.AddPeer(facts.EndOf, said.Peer)
	default:
		said.Waits.AddPeer("input from ", said.Peer)
	}
	if k.out != nil && k.out.writers.Waiting() {
		said.Waits.AddRoom(k.queued(), said.Peer)
	}
}

// peer returns the address of the other end as a value. On Linux it allocates nothing for TCP.
func (k *socket) peer() (a facts.Address) {
	if a.TCP = k.source.e.os.PeerAddrPort(int(k.fd)); !a.TCP.IsValid() {
		if peer := k.PeerAddr(); peer != nil {
			a.Name = peer.String()
		}
	}
	return a
}

// Descriptor returns the descriptor of k, less than 0 if k is closed.
func (k *socket) Descriptor() int { return int(k.fd) }

// stuck returns for how long the kernel has taken none of the queued bytes.
func (k *socket) stuck() time.Duration {
	if k.queued() == 0 {
		return 0
	}
	return time.Duration(k.source.e.tick()-k.out.since) << tickBits
}

// EachClosing visits connections that were closed but still exist: see facts.Lingerer.
func (e *readiness) EachClosing(from, n int, visit func(still time.Duration, x any)) (next int) {
	if e.counts.Lingering == 0 {
		return 0
	}
	end := min(e.slots.len(), from+n)
	for k := range e.slots.sockets(from, end) {
		if k.state&lingering != 0 {
			since, _ := k.IdleSince()
			visit(max(0, e.s.Now()-since).Truncate(time.Millisecond), (*closing)(k))
		}
	}
	if end == e.slots.len() {
		return 0
	}
	return end
}

// closing is a socket that was closed but still exists: its last bytes are on their way, or its peer has not closed.
type closing socket

func (c *closing) Describe(d *act.Description) {
	k := (*socket)(c)
	d.Name = "a closed connection of "
	if a := k.LocalAddr(); a != nil {
		d.Name += a.Network() + " " + a.String()
	}
	d.Internals().Peer = k.peer()
	if n := k.queued(); n > 0 {
		d.WaitsFor(fmt.Sprintf("room: %d bytes queued", n))
	} else {
		d.WaitsFor("its peer to close")
	}
	left := max(0, k.out.timer.When()-k.source.e.s.Now())
	d.WaitsFor(fmt.Sprintf("a timer due in %v", left.Round(time.Millisecond)))
}

// Describe covers all tasks that wait for a.
func (a *acceptor) Describe(d *act.Description) {
	switch {
	case a.fd < 0 || !a.waker.Armed():
	case a.lacks == aPlace:
		d.WaitsFor("a place for another connection, at the limit")
	case a.lacks == aDescriptor:
		d.WaitsFor("a descriptor, or memory, for another connection")
	case a.lacks == permission:
		d.WaitsFor("permission to accept, which the kernel refuses")
	default:
		d.WaitsFor("connections to " + a.addr.String())
	}
}

func (a *acceptor) Refusals() (full, short uint64) { return a.full, a.short }
