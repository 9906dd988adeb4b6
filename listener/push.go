package listener

import (
	"fmt"
	"math"
	"net"
	"os"
)

// Overflow is what Push does with a message for which there is no room.
type Overflow uint8

const (
	// Block refuses the message for now. The error is an act.Blocked, which wakes its task when there may be room.
	Block Overflow = iota
	// DropNewest drops the message. The error is [ErrDropped], so that a task can count them.
	DropNewest
	// Abort aborts the connection. The error is [net.ErrClosed], as that of all further calls. The task that waits for
	// the connection is woken, and ends with that error: to a service that is an ordinary end, logged at level debug.
	Abort
)

func (o Overflow) check() error {
	if o > Abort {
		return fmt.Errorf("listener: Overflow(%d) means nothing", o)
	}
	return nil
}

// Push writes all of p or nothing, so that a message is never cut short: it is for messages from other tasks, such as
// those of a broker to its subscribers. Messages of one turn go out together, as with Write. There is no room for p if
// the bytes that are queued for a slow peer and p together are more than Limits.High. Then Limits.Overflow decides: the
// error is an act.Blocked; or ErrDropped; or the connection is aborted. Whatever Overflow is, a message longer than
// Limits.High is ErrTooLong, and other errors are those of Write. After any error nothing of p was taken.
//
// A Write that took only a part must be finished before the next Push, or that one lands in the middle. A connection
// to which several tasks write has only Push. A posted function has no task that could wait for room: use DropNewest or Abort
// there, or have a task try again.
func (c *Conn) Push(p []byte) error { return c.PushOr(c.settings.limits.Overflow, p) }

// PushOr is Push with an Overflow for this message, in place of that of Limits: with Block or Abort a message is never
// dropped. So an answer arrives on a connection whose other messages may be dropped.
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

// PushShared is Push of bytes that nobody may change any more, such as a message to many connections. What a slow peer has
// not taken is not copied for each, unless it is short or gathered with other bytes of this turn. For the [Budget] the message counts once on each scheduler,
// and not for each connection.
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
