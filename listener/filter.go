package listener

import (
	"errors"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// Filter makes the action that prepares a connection before its handler sees it, such as one that reads a PROXY header,
// or that puts TLS under the connection with [Conn.Wrap]. The action runs in the connection's own task, and can do what
// any action can. If it is Done, the connection is ready. If it fails, the connection is refused and closed, unless the
// filter has aborted it. A nil action leaves the connection as it is. A Filter is called on the scheduler's thread.
//
// An action may have a method Silent() bool, which reports whether its peer has sent nothing yet. During shutdown the
// connection of a silent peer is closed at the time of [Conn.FirstLeaveTime].
type Filter func(*Conn) act.Action

type filtered struct {
	act.Child // the filter under way
	conn      *Conn
	rest      []Filter
	leave     time.Duration // when a silent peer is given up because of a shutdown; 0: never
	timer     act.Timer     // of leave
}

// errEnding is the error of a filter that a shutdown ends before the peer has sent anything.
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
		_ = f.Child.Close() // its result is known
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

// Stop forwards a shutdown request, and gives a silent peer until its FirstLeaveTime.
func (f *filtered) Stop(t *act.Task, o shutdown.Order) {
	f.Child.Stop(t, o)
	if f.silent() {
		f.leave = max(1, f.conn.FirstLeaveTime(t))
		t.WakeAt(&f.timer, f.leave)
	}
}

// Abandon forwards to the filter, which has offloaded something.
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

// PeerError is the error of a connection whose peer has violated a protocol. [Line], [Frame] and Streams that a filter
// puts under a connection, such as TLS, return it. A service treats it like a reset, and logs it at debug level.
type PeerError struct {
	Err error // what the peer did wrong, such as ErrTooLong or an error of package crypto/tls
}

// Error returns the text of Err.
func (e *PeerError) Error() string { return e.Err.Error() }

// Unwrap returns Err, for errors.Is and errors.As.
func (e *PeerError) Unwrap() error { return e.Err }

// Wrap puts another Stream under the connection. It calls over with the present Stream, which the returned one owns
// from then on. Bytes written before are sent first. Unread bytes stay unread and come before the bytes of the new
// Stream; a Stream that changes bytes needs them itself, so take them with Peek and Discard and pass them to it. See
// [monitor.Stream] for how a Stream that changes no bytes keeps [Conn.SendFile] and [Conn.Ended] as they were. Wrap is
// for the owner of the connection, in a turn and before waiting for it. The error is net.ErrClosed, or the one of
// sending.
func (c *Conn) Wrap(over func(monitor.Stream) monitor.Stream) error {
	if err := c.send(); err != nil {
		return err
	}
	c.stream = over(c.stream)
	return nil
}

// As finds a Stream of type T under c, at the top or below Streams that change no bytes, and reports whether there is
// one: see [monitor.As]. A package whose filter has put a Stream of its own under a connection finds it again with As.
func As[T any](c *Conn) (T, bool) { return monitor.As[T](c.stream) }
