package netpoll

import (
	"strings"
	"sync"
	"time"
)

// Ready is a set of conditions of a descriptor.
type Ready uint8

const (
	// In: there may be something to receive or to accept.
	In Ready = 1 << iota
	// Out: there may be room to send, or a connect in progress has been decided.
	Out
	// PeerClosed: the peer will send nothing more. What it sent before may still be unread; a receive
	// that meets the end says io.EOF. It comes with In.
	PeerClosed
	// Priority: there is out-of-band data, or its mark lies ahead, so that neither a short read nor one
	// EAGAIN means that everything was read; see the rule above. On kqueue, where not every system
	// reports it, it comes with every In of a Stream: the safe answer, at the price of one receive more.
	Priority
	// Error: the connection is broken or both directions are closed. A task that waits for
	// anything on the descriptor should try: its call returns the error, as does System.SocketError.
	Error
)

var readyNames = [...]string{"in", "out", "peer-closed", "priority", "error"}

// String lists what is set, as in "in|out"; "none" when nothing is.
func (r Ready) String() string {
	var set []string
	for i, name := range readyNames {
		if r&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	if set == nil {
		return "none"
	}
	return strings.Join(set, "|")
}

// Event is a report that a descriptor has become ready. One Wait may report the same Tag twice with
// different conditions (kqueue does); they add up.
type Event struct {
	Tag   uint64
	Ready Ready
}

// Kind is how a descriptor is watched.
type Kind uint8

const (
	// Stream is a connection: watched for everything.
	Stream Kind = iota
	// Listener is a listening socket that this poller alone watches: In only.
	Listener
	// SharedListener is one listening socket registered at several pollers: In only. On Linux
	// (EPOLLEXCLUSIVE) at least one of the pollers that wait is told of an arrival, usually not all;
	// on kqueue all are. In both cases an accept may find that another was faster.
	SharedListener
)

// reserved is the tag of the interrupt's own event.
const reserved = ^uint64(0)

// Poller watches descriptors for one thread. It is made by [System.OpenPoller]; the zero Poller is not
// usable. All methods but Interrupt belong to one goroutine at a time.
type Poller struct {
	sel    selector
	closed bool
	// interrupting is read-locked inside Interrupt, and locked for ever by Close: a late Interrupt must not write into a
	// descriptor that was closed and whose number a connection has got since. Interrupt only tries, so it never parks.
	interrupting sync.RWMutex
}

// OpenPoller makes a Poller. It takes two descriptors (one or three on kqueue), so EMFILE and ENFILE are
// possible. The first of a program has the Go runtime open its own poller as well, which takes as many.
func (System) OpenPoller() (*Poller, error) {
	p := new(Poller)
	if err := p.sel.open(); err != nil {
		return nil, err
	}
	if err := openRuntimePoller(); err != nil {
		_ = p.sel.close()
		return nil, err
	}
	return p, nil
}

// Add registers fd, once in its life, edge-triggered. What is ready already is reported by the next
// Wait. The tag comes back with every event of fd; an index with a generation makes late events for a
// closed and re-used descriptor harmless. The tag ^uint64(0) is the interrupt's own: Add panics.
//
// Closing fd unregisters it, provided that no duplicate of it is open; one that stays open, because
// other pollers share it, needs Remove.
func (p *Poller) Add(fd int, tag uint64, k Kind) error {
	if tag == reserved {
		panic("netpoll: the tag ^uint64(0) belongs to the interrupt")
	}
	if p.closed {
		return errClosed
	}
	return p.sel.add(fd, tag, k)
}

// Remove unregisters fd, which stays open: this poller takes no more of its events, nor of the wake-ups
// that are meant for one of several pollers. Events that were fetched before may still be on their way.
func (p *Poller) Remove(fd int) error {
	if p.closed {
		return errClosed
	}
	return p.sel.remove(fd)
}

// Wait reports what has become ready, at most len(events) of them; the rest waits for the next Wait.
// With atMost 0 it only looks, with atMost < 0 it waits without a deadline, else until the deadline,
// never ending early by the system's clock for that reason. It returns 0 without an error when the
// deadline has passed, after an Interrupt, and when a signal arrived: the caller looks at its own clock.
//
// The interrupt's event takes a place among the events for a moment: with one, a batch may be one short
// of full while more is ready.
func (p *Poller) Wait(events []Event, atMost time.Duration) (int, error) {
	if len(events) == 0 {
		panic("netpoll: Wait needs room for at least one event")
	}
	if p.closed {
		return 0, errClosed
	}
	return p.sel.wait(events, atMost)
}

// Interrupt ends the present Wait, or the next one if there is none. Any goroutine may call it, also
// while and after the Poller is closed; it does not block. Several may be answered by one return of Wait.
// Each is a system call: a caller that interrupts often remembers that one is on its way.
func (p *Poller) Interrupt() {
	if p.interrupting.TryRLock() {
		p.sel.wake()
		p.interrupting.RUnlock()
	}
}

// Close ends the Poller; the descriptors it watched stay open. A second Close, and Add or Wait after
// it, return EBADF. It must not be called while a Wait is under way.
func (p *Poller) Close() error {
	if p.closed {
		return errClosed
	}
	p.closed = true
	p.interrupting.Lock()
	return p.sel.close()
}
