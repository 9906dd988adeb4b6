package listener

import (
	"errors"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Filter makes the action that prepares a connection before it is used: one that reads a header in front of the bytes,
// or that puts another Stream under the connection with [Conn.Wrap], such as TLS. The action runs in the connection's
// own task and has what any action has: turns, offloads, deadlines, Stop, Abandon and Close. Done means that the
// connection is ready; with Failed it is refused, and closed in stages, unless the filter has aborted it. A nil action
// leaves the connection as it is.
//
// An action with a method Silent() bool reports with it whether its peer has sent nothing yet. Under an order the connection of
// a silent peer is closed at its moment: see [Conn.FirstLeaveTime].
type Filter func(*Conn) act.Action

type filtered struct {
	act.Child // the filter under way
	conn      *Conn
	rest      []Filter
	leave     time.Duration // when a silent peer is given up because of an order; 0: there is none
	timer     act.Timer     // of leave
}

// errEnding is the failure of a filter that an order ends before the peer has sent anything.
var errEnding = errors.New("listener: the server is ending, and the peer has sent nothing")

func (f *filtered) Act(t *act.Task) act.Directive {
	for {
		d := f.Child.Act(t)
		if d == act.Wait && f.leave > 0 && t.Scheduler().Now() >= f.leave && f.silent() {
			_ = f.conn.close(0) // an error means that the peer has gone
			return t.Fail(errEnding)
		}
		if d != act.Done {
			return d
		}
		_ = f.Child.Close() // its verdict is known
		switch {
		case f.conn.stream == nil:
			return t.Fail(net.ErrClosed)
		case len(f.rest) == 0:
			return act.Done
		}
		f.Child = act.Child{Action: f.rest[0](f.conn)}
		f.rest = f.rest[1:]
		if o := t.Order(); o != nil { // it came before this filter
			f.Stop(t, o)
		}
	}
}

func (f *filtered) silent() bool {
	x, ok := f.Action.(interface{ Silent() bool })
	return ok && x.Silent()
}

// Stop passes an order on, and gives a silent peer until its moment.
func (f *filtered) Stop(t *act.Task, o shutdown.Order) {
	f.Child.Stop(t, o)
	if f.silent() {
		f.leave = max(1, f.conn.FirstLeaveTime(t))
		t.WakeAt(&f.timer, f.leave)
	}
}

// Abandon passes on to the filter, which has offloaded something.
func (f *filtered) Abandon() act.Action {
	f.timer.Stop()
	return f.Child.Abandon()
}

// Close closes the filter.
func (f *filtered) Close() error {
	f.timer.Stop()
	return f.Child.Close()
}

func (f *filtered) Describe(d *act.Description) {
	if f.Action != nil {
		d.WaitsFor("a filter of the connection: " + act.Name(f.Action))
		f.Child.Describe(d)
	}
}

// PeerError is the error of a connection whose peer has broken a protocol. A Stream that a filter puts under a connection
// returns it, such as that of TLS, and so do [Line] and [Frame]. It is as ordinary as a reset: a service logs it at debug level.
type PeerError struct{ Err error }

func (e *PeerError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PeerError) Unwrap() error { return e.Err }

// Wrap puts another Stream under the connection: the one that over makes of the present one, which it owns from then on.
// What was written goes out before. Unread bytes stay unread and come before those of the new Stream; a Stream that
// changes bytes must be given them, so take them with Peek and Discard and hand them to it. See [monitor.Stream] for
// how a Stream that changes none keeps [Conn.SendFile] and [Conn.Ended] as they were. It is for the owner of the
// connection, in a turn and before waiting for it. The error is net.ErrClosed, or that of what was written.
func (c *Conn) Wrap(over func(monitor.Stream) monitor.Stream) error {
	if err := c.send(); err != nil {
		return err
	}
	c.stream = over(c.stream)
	return nil
}

// As returns the T that carries c, or that lies below it under Streams that change no bytes: see [monitor.As]. A package
// whose filter has put a Stream of its own under a connection finds it again with As.
func As[T any](c *Conn) (T, bool) { return monitor.As[T](c.stream) }
