package listener

import (
	"math"
	"net"
	"os"
)

// Push writes all of p or nothing, so that a message is never cut short. It is for messages from other tasks, as from a
// broker to its subscribers. Messages of one turn are sent together, as with Write. It does not keep p. There is no
// room for p if the queued bytes and p together exceed Limits.High. Then the error is an act.Blocked: a task waits with
// it, and a caller that does not want to wait drops the message, or aborts the connection. For a message longer than
// Limits.High the error is always ErrTooLong. Other errors are as for [Conn.Write]. After any error nothing of p was
// taken. Push is for the scheduler's thread.
//
// A Write that took only a part must be finished before the next Push, whose message would otherwise land in the
// middle. If several tasks write to a connection, all of them use Push.
func (c *Conn) Push(p []byte) error { return c.push(p, false) }

// PushShared is [Conn.Push] of bytes that must not be changed afterwards, such as one message to many connections.
// Bytes that slow peers have not taken are not copied for each, unless they are few or gathered with other bytes of
// this turn. For the [Budget] the message counts once on each scheduler, not once for each connection.
func (c *Conn) PushShared(p []byte) error { return c.push(p, true) }

func (c *Conn) push(p []byte, shared bool) error {
	if c.stream == nil {
		return net.ErrClosed
	}
	l := &c.settings.limits
	if len(p) > l.High {
		return ErrTooLong
	}
	queued, err := c.stream.Queued()
	if err != nil {
		return err
	}
	b := c.activate()
	switch {
	case b.passed(b.write):
		return os.ErrDeadlineExceeded
	case queued+len(p) <= l.High:
		_, err = b.put(p, math.MaxInt, shared) // all of it: at most what is gathered is queued beyond High
		return err
	case len(p) > l.High-l.Low: // at the low mark there would be no room yet
		return (*blockedEmptying)(c)
	}
	return (*blockedOutput)(c)
}
