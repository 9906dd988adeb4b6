package netpoll

import (
	"cmp"
	"strings"
	"sync"
	"time"
)

// Ready is a set of conditions of a descriptor, as bits: test it with &.
type Ready uint8

const (
	// In means that there may be bytes to receive, or a connection to accept.
	In Ready = 1 << iota
	// Out means that there may be room to send, or that a connect that was under way has succeeded or failed.
	Out
	// PeerClosed means that the peer sends nothing more. Bytes that it sent before may still be unread. It comes with
	// In.
	PeerClosed
	// Priority means that there is out-of-band data, or that its mark lies ahead; see the rule in the package
	// documentation. Linux only.
	Priority
	// Error means that the connection is broken or both directions are closed. The next call returns the error, if
	// there is one, as does System.SocketError.
	Error
	// Partial means that a short read may not have read everything, since the mark of out-of-band data may lie ahead.
	// It comes with every In of a Stream on kqueue, where not every kernel reports the mark, and costs one further
	// receive, which returns EAGAIN. It never comes on Linux.
	Partial
	// Shared is for [Poller.Add] only: with In it watches a listening socket that several pollers watch. On Linux
	// (EPOLLEXCLUSIVE) at least one of the pollers that wait reports an arrival, usually not all; on kqueue all do. An
	// accept may find nothing.
	Shared
)

var readyNames = [...]string{"in", "out", "peer-closed", "priority", "error", "partial", "shared"}

// String lists the conditions, as in "in|out", or returns "none".
func (r Ready) String() string {
	var set []string
	for i, name := range readyNames {
		if r&(1<<i) != 0 {
			set = append(set, name)
		}
	}
	return cmp.Or(strings.Join(set, "|"), "none")
}

// Event is a report of [Poller.Wait] that the descriptor that was added with Tag has become ready. One Wait may report
// the same Tag twice with different conditions (kqueue does); they add up.
type Event struct {
	Tag   uint64 // the tag that Add was given with the descriptor
	Ready Ready  // the conditions of the descriptor that hold
}

// reserved is the tag of the interrupt's own event.
const reserved = ^uint64(0)

// Poller watches descriptors for one thread: [System.OpenPoller] makes it, Add registers descriptors, Wait reports
// them. All methods but Interrupt belong to one goroutine at a time.
type Poller struct {
	sel    selector
	closed bool
	// interrupting is read-locked inside Interrupt, and locked for ever by Close: a late Interrupt must not write into a
	// descriptor that was closed and whose number a connection has got since. Interrupt only tries, so it never parks.
	interrupting sync.RWMutex
}

// OpenPoller returns a new Poller. It takes two descriptors (one or three on kqueue) and fails if there are none. The
// first call in a program makes the Go runtime open its own poller as well, which takes as many. Close it after use.
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

// Add registers fd, edge-triggered. want is In, Out, In|Shared, or In|Out, which is for a connection and reports all
// conditions; anything else is EINVAL. If fd is ready already, the next Wait reports it. A second Add fails before fd is
// closed or removed. The tag comes back with every event of fd; Add panics on ^uint64(0), which is reserved. Closing fd
// unregisters it, unless a duplicate of it is open; a descriptor that stays open, because other pollers share it, needs
// Remove.
func (p *Poller) Add(fd int, tag uint64, want Ready) error {
	if tag == reserved {
		panic("netpoll: the tag ^uint64(0) belongs to the interrupt")
	}
	if p.closed {
		return errClosed
	}
	return p.sel.add(fd, tag, want)
}

// Remove unregisters fd, which stays open. A descriptor that is closed at once needs no Remove: see Add. This poller then
// reports no more events of fd, and takes none that another poller should get (Shared). A batch of events that Wait has
// returned before may still have one. After Close the error is EBADF; otherwise it is one of the kernel.
func (p *Poller) Remove(fd int) error {
	if p.closed {
		return errClosed
	}
	return p.sel.remove(fd)
}

// Wait reports descriptors that have become ready, at most len(events) of them, and returns how many; the rest waits
// for the next Wait. With atMost 0 it polls without waiting, and with atMost < 0 it waits without a deadline. It never
// ends early because of a deadline. It returns 0 without an error when the deadline has passed, after an Interrupt, and
// when a signal arrived. An interrupt takes a place among the events: a batch may be one short of full while more is
// ready.
func (p *Poller) Wait(events []Event, atMost time.Duration) (int, error) {
	if len(events) == 0 {
		panic("netpoll: Wait needs room for at least one event")
	}
	if p.closed {
		return 0, errClosed
	}
	return p.sel.wait(events, atMost)
}

// Interrupt ends the present Wait, or the next one if there is none. It is for any goroutine, even while and after the
// Poller is closed, and does not block. One return of Wait may serve several Interrupts. Each is a system call.
func (p *Poller) Interrupt() {
	if p.interrupting.TryRLock() {
		p.sel.wake()
		p.interrupting.RUnlock()
	}
}

// Close closes the Poller; the descriptors that it watched stay open. Every later call except Interrupt returns EBADF.
// It must not be called during a Wait.
func (p *Poller) Close() error {
	if p.closed {
		return errClosed
	}
	p.closed = true
	p.interrupting.Lock()
	return p.sel.close()
}
