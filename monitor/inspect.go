package monitor

import (
	"time"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/netpoll"
)

// EachState implements engine.Audited.
func (e *readiness) EachState(visit func(engine.State)) {
	for _, sl := range e.slots {
		if k, ok := sl.watcher.(*socket); ok && k.fd >= 0 {
			visit(engine.State{
				FD: int(k.fd), In: k.ready&netpoll.In != 0, Queued: k.queued(),
				Dialing: k.state&dialing != 0, ForEnd: k.state&forEnd != 0, Half: k.ready&netpoll.PeerClosed != 0,
				Reader: k.reader.Armed(), Writer: k.out != nil && k.out.writers.Waiting(),
			})
		}
	}
}

// Counts implements hook.Counter.
func (e *readiness) Counts(add func(name string, n uint64)) { e.counts.Counts(add) }

// WaitsFor implements hook.Valued, for all tasks that wait for k.
func (k *socket) WaitsFor(w *hook.Waits) {
	switch {
	case k.fd < 0 || !k.reader.Armed():
	case k.state&dialing != 0:
		w.Add("the answer to a connect")
	case k.state&forEnd != 0:
		w.AddPeer(hook.EndOf, k.PeerAddress())
	default:
		w.AddPeer("input from ", k.PeerAddress())
	}
	if k.out != nil && k.out.writers.Waiting() {
		w.AddRoom(k.queued(), k.PeerAddress())
	}
}

// PeerAddress implements hook.Addressed.
func (k *socket) PeerAddress() (a hook.Address) {
	if k.fd < 0 {
		return a
	}
	if a.TCP = k.source.e.os.PeerAddrPort(int(k.fd)); !a.TCP.IsValid() {
		if peer := k.PeerAddr(); peer != nil {
			a.Name = peer.String()
		}
	}
	return a
}

// Descriptor implements hook.Descriptor.
func (k *socket) Descriptor() int { return int(k.fd) }

// Stuck implements hook.Sticking.
func (k *socket) Stuck() time.Duration {
	if k.queued() == 0 {
		return 0
	}
	return time.Duration(k.source.e.tick()-k.out.since) << tickBits
}

// EachClosing implements hook.Lingerer.
func (e *readiness) EachClosing(from, n int, visit func(hook.Closing)) (next int) {
	if e.counts.Lingering == 0 {
		return 0
	}
	end := min(len(e.slots), from+n)
	for i := from; i < end; i++ {
		if k, ok := e.slots[i].watcher.(*socket); ok && k.state&lingering != 0 {
			visit(k)
		}
	}
	if end == len(e.slots) {
		return 0
	}
	return end
}

// Still implements hook.Stiller.
func (k *socket) Still() time.Duration {
	since, _ := k.IdleSince()
	return max(0, k.source.e.s.Now()-since).Truncate(time.Millisecond)
}

// Closing implements hook.Closing.
func (k *socket) Closing() (l hook.Lingering) {
	l.Queued, l.Still, l.Stuck = k.queued(), k.Still(), k.Stuck()
	l.Left = max(0, k.out.timer.When()-k.source.e.s.Now())
	l.Peer = k.PeerAddress()
	if a := k.LocalAddr(); a != nil {
		l.Local = a.Network() + " " + a.String()
	}
	return l
}

// Waits implements hook.Waiting, for the task that waits for a.
func (a *acceptor) Waits(add func(what string)) {
	switch {
	case a.fd < 0 || !a.waker.Armed():
	case a.lacks == aPlace:
		add("a place for another connection, at the limit")
	case a.lacks == aDescriptor:
		add("a descriptor, or memory, for another connection")
	case a.lacks == permission:
		add("permission to accept, which the system refuses")
	default:
		add("connections to " + a.addr.String())
	}
}

// Refusals implements Acceptor.
func (a *acceptor) Refusals() (full, short uint64) { return a.full, a.short }
