package readiness

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/netpoll"
)

// State is what package sim sees of a Socket.
type State struct {
	FD             int
	In             bool // there may be something to receive
	Reader, Writer bool // a task waits for input, for room
	Queued         int  // bytes that the system has not taken yet
	Dialing        bool // the reader waits for the connection
	ForEnd         bool // the reader waits for the end, and not for input
	Half           bool // the peer is known to have closed its side
}

// Inspect calls visit for each open Socket of s.
func Inspect(s *act.Scheduler, visit func(State)) {
	for _, sl := range engines.Get(s).slots {
		if k, ok := sl.watcher.(*Socket); ok && k.fd >= 0 {
			visit(State{
				FD: int(k.fd), In: k.ready&netpoll.In != 0, Queued: k.queued(),
				Dialing: k.state&dialing != 0, ForEnd: k.state&forEnd != 0, Half: k.ready&netpoll.PeerClosed != 0,
				Reader: audit.Waits(&k.reader), Writer: k.out != nil && k.out.writers.Waiting(),
			})
		}
	}
}

// Counts are of what an engine has done, of readiness or of completions: plain numbers of its thread.
type Counts struct {
	Receives, Received, Sends, Sent uint64 // operations that did something, and their bytes
	Short, RoomWaits                uint64 // sends of less than all, and times that a task has begun to wait for room

	Open, Lingering uint64 // connections, now
	Accepts, Dials  uint64
	Full, Shortages uint64 // refusals to accept: for want of a place; of descriptors, memory or permission
	Lost            uint64 // connections that were gone before they could be accepted
	Broken          uint64 // by the peer, or the way to it
	Aborts, Lingers uint64 // connections that were reset by this side, and those closed in stages
}

// Counts implements hook.Counter.
func (c *Counts) Counts(add func(name string, n uint64)) {
	add("connections", c.Open)
	add("connections_lingering", c.Lingering)
	add("connections_accepted_total", c.Accepts)
	add("connections_dialled_total", c.Dials)
	add("connections_lingered_total", c.Lingers)
	add("connections_aborted_total", c.Aborts)
	add("connections_broken_total", c.Broken)
	add("accepts_lost_total", c.Lost)
	add("accepts_full_total", c.Full)
	add("accepts_short_total", c.Shortages)
	add("receives_total", c.Receives)
	add("received_bytes_total", c.Received)
	add("sends_total", c.Sends)
	add("sent_bytes_total", c.Sent)
	add("sends_short_total", c.Short)
	add("waits_for_room_total", c.RoomWaits)
}

// Counts implements hook.Counter.
func (e *Engine) Counts(add func(name string, n uint64)) { e.counts.Counts(add) }

// WaitsFor implements hook.Valued, for all tasks that wait for k.
func (k *Socket) WaitsFor(w *hook.Waits) {
	switch {
	case k.fd < 0 || !audit.Waits(&k.reader):
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
func (k *Socket) PeerAddress() (a hook.Address) {
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
func (k *Socket) Descriptor() int { return int(k.fd) }

// Stuck implements hook.Sticking.
func (k *Socket) Stuck() time.Duration {
	if k.queued() == 0 {
		return 0
	}
	return time.Duration(k.source.e.tick()-k.out.since) << tickBits
}

// EachClosing implements hook.Lingerer.
func (e *Engine) EachClosing(from, n int, visit func(hook.Closing)) (next int) {
	if e.counts.Lingering == 0 {
		return 0
	}
	end := min(len(e.slots), from+n)
	for i := from; i < end; i++ {
		if k, ok := e.slots[i].watcher.(*Socket); ok && k.state&lingering != 0 {
			visit(k)
		}
	}
	if end == len(e.slots) {
		return 0
	}
	return end
}

// Still implements hook.Stiller.
func (k *Socket) Still() time.Duration {
	since, _ := k.IdleSince()
	return max(0, k.source.e.s.Now()-since).Truncate(time.Millisecond)
}

// Closing implements hook.Closing.
func (k *Socket) Closing() (l hook.Lingering) {
	l.Queued, l.Still, l.Stuck = k.queued(), k.Still(), k.Stuck()
	l.Left = max(0, k.out.timer.When()-k.source.e.s.Now())
	l.Peer = k.PeerAddress()
	if a := k.LocalAddr(); a != nil {
		l.Local = a.Network() + " " + a.String()
	}
	return l
}

// Waits implements hook.Waiting, for the task that waits for a.
func (a *Acceptor) Waits(add func(what string)) {
	switch {
	case a.fd < 0 || !audit.Waits(&a.waker):
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

// Refusals returns how often Accept had no connection for want of a place, and of descriptors, memory or permission.
func (a *Acceptor) Refusals() (full, short uint64) { return a.full, a.short }
