package websocket

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/timeout"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/shutdown"
)

// session is the action of a connection: around the turns of the user's action it handles pings, time-outs and the
// close handshake.
//
//	user's turns ──────▶ over: closed by either side, broken, or cut ──▶ one more turn ──▶ ending
//	     └──────────────────────── the user's action has finished ───────────────────────────▲
type session struct {
	Conn
	act.Child // the user's
	timer     timeout.Timer
	since     time.Duration // when the peer was asked for a sign of life, or when ending began
}

// newSession returns the session of a connection, whose handshake is over, with the action of the user's handler.
func newSession(c Conn, handler func(*Conn) act.Action) *session {
	x := &session{Conn: c}
	x.extra, x.heard = &none, c.conn.Scheduler().Now()
	if x.Child.Action = handler(&x.Conn); x.Child.Action == nil {
		x.Child.Action = act.Func(func(*act.Task) act.Directive { return act.Done })
	}
	return x
}

// Act gives the user's action a turn, whatever has woken the task: actions put up with that.
func (x *session) Act(t *act.Task) act.Directive {
	d := x.goOn(t)
	x.count()
	return d
}

func (x *session) goOn(t *act.Task) act.Directive {
	x.waker, x.wants = t.Waker(), false
	_ = x.flush() // an error stays for the next call
	if x.phase == ending {
		return x.end(t)
	}
	told := x.over()
	d := x.Child.Act(t)
	switch d {
	case act.Done:
		return x.finish(t)
	case act.Failed:
		if err := t.Err(); !x.ends(err) {
			x.more().failure = err
		}
		return x.finish(t)
	case act.Async:
		return d
	}
	if leave := x.extra.leave; leave != 0 && t.Scheduler().Now() >= leave {
		x.shut(frame.GoingAway, "")
	}
	switch {
	case d == act.Yield:
		return d
	case x.over() && told:
		_ = x.Child.Close() // there is no caller left to return its error to
		return x.finish(t)
	case x.over():
		return act.Yield
	}
	return x.rest(t)
}

// over reports whether the connection is of no more use to the user.
func (x *session) over() bool { return x.phase != open || x.extra.got != nil }

// rest has a turn come when there is something to do.
func (x *session) rest(t *act.Task) act.Directive {
	err := x.poll()
	blocked, nothing := err.(act.Blocked)
	switch {
	case nothing:
		blocked.Arm(t)
	case err != nil, x.wants:
		return act.Yield
	default: // the user does not receive: no more is read, so only the end is of interest
		if _, err := x.conn.Ended(t); err != nil {
			_ = x.lost(err)
			return act.Yield
		}
	}
	if blocked, is := x.flush().(act.Blocked); is {
		blocked.Arm(t)
	}
	if !x.alive(t, !nothing) {
		return act.Yield
	}
	if x.extra.leave != 0 {
		x.timer.WakeAt(t, x.extra.leave)
	}
	x.settle()
	return act.Wait
}

// poll handles the control frames that have come. It returns nil if a part of a message is unread.
func (x *session) poll() (err error) {
	switch {
	case x.left == 0:
		_, _, err = x.front()
	case x.wants:
		_, err = x.payload()
	}
	return err
}

// alive asks a peer that is silent for a sign of life, and cuts off one that gives none. One of which something is unread is
// asked as well, and need not answer.
func (x *session) alive(t *act.Task, unread bool) bool {
	ping, pong := timeout.Or(x.options.Ping, 30*time.Second), timeout.Or(x.options.Pong, 30*time.Second)
	now := t.Scheduler().Now()
	if unread {
		x.sign = unasked // the answer comes after it; but the ping finds out that a peer has gone
	}
	if x.sign != unasked && now >= x.since+pong {
		_ = x.conn.Flush() // else it seems to stand still for long, see there
		if x.sign == asked || x.taken() == 0 {
			x.conn.Abort()
			_ = x.broken(&CloseError{frame.Abnormal, "no answer to a ping"})
			return false
		}
		x.hear()
	}
	if x.sign == unasked && now >= x.heard+ping {
		_ = x.conn.Flush() // what the peer takes is counted from here
		queued := x.conn.Queued()
		x.sign, x.since, x.given = asked, now, int64(queued)
		if queued+len(x.extra.out) > 0 { // else that the kernel takes something is not a sign of life: it takes the ping
			x.sign = askedBehind
		}
		if len(x.extra.out) == 0 && x.ready() {
			x.put(frame.Ping, nil, false)
		} // else it has enough to take, which is a sign of life as well
	}
	if x.sign != unasked {
		x.timer.WakeAt(t, x.since+pong)
	} else {
		x.timer.WakeAt(t, x.heard+ping)
	}
	return true
}

// taken returns how many bytes the kernel has taken since the peer was asked.
func (x *session) taken() int64 { return x.given - int64(x.conn.Queued()) }

// finish begins to end the connection.
func (x *session) finish(t *act.Task) act.Directive {
	x.since = t.Scheduler().Now()
	if x.extra.failure != nil {
		x.shut(frame.Internal, "")
	} else {
		x.shut(frame.Normal, "")
	}
	x.phase = ending
	return x.end(t)
}

// skipped bounds how many pieces of input are thrown away in a turn.
const skipped = 64

// end waits until the peer has answered the close frame, and everything has been handed to the kernel. Then it closes, in
// stages, so that the close frame arrives (RFC 6455 7.1.1).
func (x *session) end(t *act.Task) act.Directive {
	limit := x.since + timeout.Or(x.options.CloseTimeout, 5*time.Second)
	late := t.Scheduler().Now() >= limit
	for n := 0; x.extra.got == nil && !late; n++ {
		err := x.skip()
		if blocked, is := err.(act.Blocked); is {
			blocked.Arm(t)
			break
		}
		if n == skipped {
			return act.Yield
		}
	}
	err := x.flush()
	if err == nil {
		err = x.conn.Sent()
	}
	blocked, more := err.(act.Blocked)
	if more && !late {
		blocked.Arm(t)
	}
	if (more || err == nil && x.extra.got == nil) && !late {
		x.timer.WakeAt(t, limit)
		return act.Wait
	}
	if x.client && err == nil && !late && x.awaitEnd(t) {
		x.timer.WakeAt(t, limit)
		return act.Wait
	}
	if err != nil && !more {
		x.conn.Abort()
	}
	x.timer.Stop()
	x.more().out = nil
	x.forget()
	if err := x.extra.failure; err != nil && !x.client {
		return t.Fail(err) // the report names the peer; then Close closes the connection
	}
	_ = x.conn.Close() // an error means that the peer has gone
	if err := x.extra.failure; err != nil {
		return t.Fail(err)
	}
	return act.Done
}

// awaitEnd reports whether the server has still to close the connection, which it does first (RFC 6455 7.1.1). One that goes
// on sending is not waited for.
func (x *session) awaitEnd(t *act.Task) bool {
	for range skipped {
		in, err := x.conn.Peek(1)
		if blocked, is := err.(act.Blocked); is {
			blocked.Arm(t)
			return true
		}
		if err != nil {
			return false
		}
		x.conn.Discard(len(in))
	}
	return false
}

// skip throws away a piece of a message.
func (c *Conn) skip() error {
	if err := c.begin(); err != nil {
		return err
	}
	in, err := c.payload()
	if err != nil {
		return err
	}
	c.conn.Discard(len(in))
	if c.left -= int64(len(in)); c.left == 0 && c.head.Final {
		c.complete()
	}
	return nil
}

// Stop passes a shutdown request on. The turn that comes after it, or at its moment in the window of the shutdown, is
// the last of the user's action in which it may send.
func (x *session) Stop(t *act.Task, o shutdown.Order) {
	leave := max(1, t.NextLeaveTime())
	if x.extra.leave == 0 || leave < x.extra.leave {
		x.more().leave = leave
	}
	if x.phase != ending {
		x.Child.Stop(t, o)
	}
}

// Close closes the user's action, if it has not finished. Other tasks, which may wait for the connection, learn that it has
// ended, even if that was by a panic.
func (x *session) Close() error {
	if x.phase == open {
		_ = x.broken(net.ErrClosed)
	}
	if x.extra.failure != nil {
		_ = x.conn.Close() // an error means that the peer has gone
	}
	return x.Child.Close()
}
