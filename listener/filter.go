package listener

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/monitor"
)

// Filter makes the action that prepares a connection before it is used: one that reads a header in front of the bytes,
// or that puts another Stream under the connection with [Conn.Wrap], such as TLS. The action runs in the connection's
// own task and has what any action has: turns, offloads, deadlines, Stop, Abandon and Close. Done means that the
// connection is ready; with Failed it is refused, and closed in stages, unless the filter has aborted it. A nil action
// leaves the connection as it is.
type Filter func(*Conn) act.Action

// Filtered returns an action that runs the filters on c, one after the other. If they have not finished within the
// given time in total, it fails with an error that is os.ErrDeadlineExceeded; 0 means 10 s. If a filter has closed c, it
// fails with net.ErrClosed. An order is passed on to the filter under way. The caller owns c.
func Filtered(c *Conn, within time.Duration, filters ...Filter) act.Action {
	if within == 0 {
		within = 10 * time.Second
	}
	return Within(within, &filtered{conn: c, rest: filters})
}

type filtered struct {
	act.Child // the filter under way
	conn      *Conn
	rest      []Filter
}

func (f *filtered) Act(t *act.Task) act.Directive {
	for {
		if d := f.Child.Act(t); d != act.Done {
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

// Waits implements hook.Waiting.
func (f *filtered) Waits(add func(what string)) {
	if f.Action != nil {
		add("a filter of the connection: " + act.Name(f.Action))
		hook.AskWaits(f.Action, add)
	}
}

// PeerError is the error of a connection whose peer has broken the protocol that carries the bytes, such as TLS. A Stream
// that a filter puts under a connection returns it. It is as ordinary as a reset: a service logs it at debug level.
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
func As[T monitor.Stream](c *Conn) (T, bool) { return monitor.As[T](c.stream) }
