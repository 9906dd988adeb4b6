package service

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// session is the task of one connection: the filters and then the user's action, and the connection, which the service
// owns. The two are one allocation, of 48 bytes, and the forwards are written by hand.
type session struct {
	conn   listener.Conn
	action act.Action // made in the first turn: a panic of handler is this task's and not the service's
}

// config returns what is common to the connections of the service, nil if the action has failed.
func (x *session) config() *config {
	c, _ := x.conn.Internals().Service().(*config)
	return c
}

// serves reports whether x is a connection of the service, on c's scheduler.
func (c *config) serves(x *session) bool {
	of := x.config()
	return of != nil && of.replaced == c.replaced
}

// filters is the action of a session before the user's.
type filters struct{ act.Child }

func (x *session) Act(t *act.Task) act.Directive {
	if x.action == nil {
		if c := x.config(); len(c.Filters) > 0 {
			x.action = &filters{act.Child{Action: x.conn.Internals().Filtered(c.FilterTimeout, c.Filters...)}}
		} else if !x.handle(t) {
			return act.Done
		}
	}
	action := x.action // x.action changes in the turn if the session is evicted
	d := action.Act(t)
	if !d.Finished() {
		return d
	}
	f, filtering := action.(*filters)
	if filtering && d == act.Done {
		_ = f.Close() // its result is known
		if !x.handle(t) {
			return act.Done
		}
		if d = x.action.Act(t); !d.Finished() {
			return d
		}
		filtering = false
	}
	switch {
	case d == act.Done:
	case filtering && !errors.As(t.Err(), new(*act.Panic)): // that is a bug of the program
		x.refused(t.Err())
		x.note(t, "a connection is refused")
	case gone(t.Err()) || errors.Is(t.Err(), io.ErrUnexpectedEOF) && x.inputEnded():
		x.config().row.Gone++
		x.note(t, "a peer has gone")
	case errors.Is(t.Err(), net.ErrClosed) && x.peek(0) == net.ErrClosed:
		x.note(t, "a connection was closed by this side")
	default:
		x.config().row.Failed++
		x.conn.Internals().SetService(nil)
		return d // the report names the peer; then comes Close
	}
	x.finish()
	return act.Done
}

// limited is the error of a connection that a filter refuses because its source has too many connections, or connects
// too often.
type limited interface {
	error
	TooFast() bool
}

// refused counts a connection that a filter has refused.
func (x *session) refused(err error) {
	x.config().row.Refused++
	if limit := limited(nil); errors.As(err, &limit) {
		if limit.TooFast() {
			x.config().row.TooFast++
		} else {
			x.config().row.TooMany++
		}
	}
}

func (x *session) note(t *act.Task, message string) {
	if entry := t.Scheduler().Logger().Check(zap.DebugLevel, message); entry != nil { // asking for the peer is a system call
		entry.Write(zap.String("peer", x.Peer()), zap.Error(t.Err()))
	}
}

// inputEnded reports whether the peer sends nothing more.
func (x *session) inputEnded() bool {
	x.conn.Discard(x.conn.Buffered())
	return x.peek(1) == io.EOF
}

// peek returns the error of the connection: io.EOF if its peer sends nothing more, net.ErrClosed if this side has closed it.
func (x *session) peek(n int) error {
	_, err := x.conn.Peek(n)
	return err
}

// Peer returns the address of the client, "" if it is no longer known.
func (x *session) Peer() string {
	if a := x.conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Replace makes the session call another action in place of old, from the next turn on: package httpd does so when it
// switches protocols. It reports whether the session was calling old.
func (x *session) Replace(old, replacement act.Action) bool {
	if x.action != old {
		return false
	}
	x.action = replacement
	x.conn.Internals().SetService(x.config().replaced)
	return true
}

// handle makes the user's action. If the handler returns none, the connection is closed.
func (x *session) handle(t *act.Task) bool {
	if x.action = x.config().Handler(&x.conn); x.action == nil {
		x.finish()
		return false
	}
	if o := t.Order(); o != nil {
		x.Stop(t, o) // it came before there was an action to be told
	}
	return true
}

// finish closes the connection in stages.
func (x *session) finish() {
	_ = x.conn.Close() // an error means that the peer has gone
}

// Stop treats the connection as AtEnd says.
func (x *session) Stop(t *act.Task, o shutdown.Order) {
	switch x.config().AtEnd {
	case Finish:
		return
	case Discard:
		x.conn.Abort()
		x.action = &discarded{act.Child{Action: x.action}}
		return
	}
	if st, ok := x.action.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

// Abandon aborts the connection at once: the function that the action has offloaded may take long, and does not use
// connections.
func (x *session) Abandon() act.Action {
	x.conn.Abort()
	return (&act.Child{Action: x.action}).Abandon()
}

// Close aborts the connection if the action has not finished: it panicked, or was dropped.
func (x *session) Close() error {
	if x.config() == nil {
		x.finish()
	} else {
		x.conn.Abort()
	}
	action := x.action
	x.action = nil // code that keeps the connection does not keep it
	if c, ok := action.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// String names the task after the user's action.
func (x *session) String() string { return act.Name(x.action) }

// gone reports whether err ends a connection because of its peer or the network. On a server such errors are as
// ordinary as the end of a connection, so they do not fail the task.
func gone(err error) bool {
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return false // it was not this peer that could not be reached
	}
	if fault := (*listener.PeerError)(nil); errors.As(err, &fault) {
		return true
	}
	return slices.ContainsFunc([]error{syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENOTCONN,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ECONNABORTED}, func(e error) bool { return errors.Is(err, e) })
}
