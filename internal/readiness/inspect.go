package readiness

import (
	"fmt"
	"slices"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/audit"
	"github.com/daimon-go/daimon/internal/netpoll"
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
				Reader: audit.Waits(k.reader), Writer: k.out != nil && slices.ContainsFunc(k.out.writers, writer.waits),
			})
		}
	}
}

func (x writer) waits() bool { return audit.Waits(x.waker) }

// counts are of what an Engine has done: plain numbers of its thread.
type counts struct {
	receives, received, sends, sent uint64 // calls of the system that did something, and their bytes
	short, roomWaits                uint64 // sends of less than all, and times that a task has begun to wait for room

	open, lingering                 uint64 // sockets, now
	accepts, dials, full, shortages uint64
	lost, broken, aborts, lingers   uint64
}

// Counts implements hook.Counter.
func (e *Engine) Counts(add func(name string, n uint64)) {
	c := &e.counts
	add("connections", c.open)
	add("connections_lingering", c.lingering)
	add("connections_accepted_total", c.accepts)
	add("connections_dialled_total", c.dials)
	add("connections_lingered_total", c.lingers) // closed in stages
	add("connections_aborted_total", c.aborts)   // reset by this side
	add("connections_broken_total", c.broken)    // by the peer, or the way to it
	add("accepts_lost_total", c.lost)            // connections that were gone before they could be accepted
	add("accepts_full_total", c.full)            // refusals for want of a place
	add("accepts_short_total", c.shortages)      // refusals for want of descriptors, memory or permission
	add("receives_total", c.receives)
	add("received_bytes_total", c.received)
	add("sends_total", c.sends)
	add("sent_bytes_total", c.sent)
	add("sends_short_total", c.short) // the system has taken less than all
	add("waits_for_room_total", c.roomWaits)
}

// Waits implements hook.Waiting, for all tasks that wait for k.
func (k *Socket) Waits(add func(what string)) {
	switch {
	case k.fd < 0 || !audit.Waits(k.reader):
	case k.state&dialing != 0:
		add("the answer to a connect")
	case k.state&forEnd != 0:
		add("the end of " + k.peer())
	default:
		add("input from " + k.peer())
	}
	if k.out != nil && slices.ContainsFunc(k.out.writers, writer.waits) {
		add(fmt.Sprintf("room: %d bytes queued for %s", k.queued(), k.peer()))
	}
}

func (k *Socket) peer() string {
	if a := k.PeerAddr(); a != nil && a.String() != "" {
		return a.String()
	}
	return "its peer"
}

// Descriptor implements hook.Descriptor.
func (k *Socket) Descriptor() int { return int(k.fd) }

// Waits implements hook.Waiting, for the task that waits for a.
func (a *Acceptor) Waits(add func(what string)) {
	switch {
	case a.fd < 0 || !audit.Waits(a.waker):
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
