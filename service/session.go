package service

import (
	"errors"
	"io"
	"syscall"

	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// session is the task of one connection: the user's action, and the connection, which the service owns.
type session struct {
	conn    *listener.Conn
	handler func(*listener.Conn) act.Action
	action  act.Action // made in the first turn: a panic of handler is this task's and not the service's
}

func (x *session) Act(t *act.Task) act.Directive {
	if x.action == nil {
		if x.action = x.handler(x.conn); x.action == nil {
			x.finish()
			return act.Done // served, or turned away, on the spot
		}
		if o := t.Order(); o != nil {
			x.Stop(t, o) // it was told before there was an action to pass that on to
		}
	}
	d := x.action.Act(t)
	if !d.Finished() {
		return d
	}
	x.finish()
	if d == act.Failed && gone(t.Err()) {
		t.Scheduler().Logger().Debug("a peer has gone", zap.Error(t.Err()))
		return act.Done
	}
	return d
}

// finish closes the connection in stages.
func (x *session) finish() {
	_ = x.conn.Close() // an error means that the peer has gone
	x.conn = nil
}

func (x *session) Stop(t *act.Task, o shutdown.Order) {
	if st, ok := x.action.(act.Stopper); ok {
		st.Stop(t, o)
	}
}

// Abandon aborts the connection at once: the function that the action has offloaded may take its time, and knows
// nothing of connections.
func (x *session) Abandon() act.Action {
	x.conn.Abort()
	return act.AbandonAction(x.action)
}

// Close aborts the connection if the action has not finished: it panicked, or was dropped.
func (x *session) Close() error {
	if x.conn != nil {
		x.conn.Abort()
	}
	if c, ok := x.action.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// String names the task after the user's action.
func (x *session) String() string { return act.Name(x.action) }

// gone tells of errors by which a connection ends because of its peer or of the way to it. On a server
// they are as ordinary as the end of a connection, so they fail nobody.
func gone(err error) bool {
	if dial := (*listener.ConnectError)(nil); errors.As(err, &dial) {
		return false // it was not this peer that could not be reached
	}
	for _, e := range []error{syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENOTCONN, syscall.EHOSTUNREACH,
		syscall.ENETUNREACH, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
