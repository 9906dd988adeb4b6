package listener

import (
	"fmt"
	"math"
	"net"
	"os"
)

// Overflow says what [Conn.Push] does with a message for which there is no room.
type Overflow uint8

const (
	// Block refuses the message for now: the error is an act.Blocked, which wakes a task when there may be room.
	Block Overflow = iota
	// DropNewest drops the message: the error is [ErrDropped], so that a task can count dropped messages.
	DropNewest
	// Abort aborts the connection: the error is [net.ErrClosed], as for all further calls. The task that waits for the
	// connection is woken, and ends with that error, which a service takes for an ordinary end and logs at debug level.
	Abort
)

func (o Overflow) check() error {
	if o > Abort {
		return fmt.Errorf("listener: Overflow(%d) means nothing", o)
	}
	return nil
}

// Push writes all of p or nothing, so that a message is never cut short. It is for messages from other tasks, as from a
// broker to its subscribers. Messages of one turn are sent together, as with Write. It does not keep p. There is no
// room for p if the queued bytes and p together exceed Limits.High. Then Limits.Overflow decides: the error is an
// act.Blocked, or ErrDropped, or the connection is aborted. For a message longer than Limits.High the error is always
// ErrTooLong. Other errors are as for [Conn.Write]. After any error nothing of p was taken.
//
// A Write that took only a part must be finished before the next Push, whose message would otherwise land in the
// middle. If several tasks write to a connection, all of them use Push. A posted function has no task that could wait
// for room: use DropNewest or Abort there, or let a task try again.
func (c *Conn) Push(p []byte) error { return c.PushOr(c.settings.limits.Overflow, p) }

// PushOr is [Conn.Push] with another Overflow than Limits.Overflow for this message. So answers can be sent with Block
// on a connection whose other messages may be dropped.
func (c *Conn) PushOr(o Overflow, p []byte) error {
	if err := o.check(); err != nil {
		panic(err.Error())
	}
	b, err := c.room(o, len(p))
	if err == nil {
		_, err = b.put(p, math.MaxInt, false) // all of it: at most what is gathered is queued beyond high
	}
	return err
}

// PushShared is [Conn.Push] of bytes that must not be changed afterwards, such as one message to many connections.
// Bytes that slow peers have not taken are not copied for each, unless they are few or gathered with other bytes of
// this turn. For the [Budget] the message counts once on each scheduler, not once for each connection.
func (c *Conn) PushShared(p []byte) error {
	b, err := c.room(c.settings.limits.Overflow, len(p))
	if err == nil {
		_, err = b.put(p, math.MaxInt, true)
	}
	return err
}

// room returns the buffers if there is room for a message of n bytes; otherwise it does what o says.
func (c *Conn) room(o Overflow, n int) (*buffers, error) {
	if c.stream == nil {
		return nil, net.ErrClosed
	}
	l := &c.settings.limits
	if n > l.High {
		return nil, ErrTooLong
	}
	queued, err := c.stream.Queued()
	if err != nil {
		return nil, err
	}
	b := c.activate()
	switch {
	case b.passed(b.write):
		return nil, os.ErrDeadlineExceeded
	case queued+n <= l.High:
		return b, nil
	case o == DropNewest:
		return nil, ErrDropped
	case o == Abort:
		c.Abort()
		return nil, net.ErrClosed
	case n > l.High-l.Low: // at the low mark there would be no room yet
		return nil, (*blockedEmptying)(c)
	}
	return nil, (*blockedOutput)(c)
}
