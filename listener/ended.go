package listener

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// IdleSince reports whether the connection is idle: nothing is unread, nothing is queued, and the peer has not closed
// its side. It also returns since when no byte has gone either way, to the millisecond on the scheduler's clock. A
// protocol uses it to say which of its connections may be evicted to make room for others: see EvictAfter of
// service.Listener. Over a Stream that is not a [monitor.IdleReporter] it reports false.
func (c *Conn) IdleSince() (since time.Duration, idle bool) {
	if c.stream == nil || c.Buffered() > 0 || c.Queued() > 0 {
		return 0, false
	}
	if stream, ok := As[monitor.IdleReporter](c); ok {
		return stream.IdleSince()
	}
	return 0, false
}

// FirstLeaveTime returns when t, the task of a connection whose first request has not arrived, should give up during
// shutdown, on the scheduler's clock. The request may be on its way, so that is up to a second after the connection was
// accepted, or after the latest byte that was sent to it. Otherwise, and for clients that only listen, see
// [act.Task.NextLeaveTime].
func (c *Conn) FirstLeaveTime(t *act.Task) time.Duration {
	since, idle := c.IdleSince()
	if !idle {
		since = t.Scheduler().Now()
	}
	return t.Scheduler().Internals().FirstLeaveTime(t, since)
}

// Ended is for a task that waits for something other than input, such as a timer, and needs to know when its peer has
// gone. half reports that the peer has closed its side: it sends nothing beyond the bytes that may be unread, and may
// still be reading. err says why the connection is broken: an error of the kernel, possibly about bytes that were
// written earlier, or net.ErrClosed. With an error half means nothing.
//
// t is woken once when half or err changes, so a reset after a half-close wakes it too, and when another task closes
// the connection. Unlike with act.Blocked, arriving bytes do not wake it; nothing is received, and nothing unread is
// lost. After an error there is nothing left to wait for. A Conn has one place for a task that waits to read or for the
// end: the later call counts. Like any Waker it is good for one turn, so call Ended again in each.
//
// Over a Stream that is not a [monitor.CloseNotifier] it returns false and nil, and t is not woken. It costs a system
// call only if the kernel has reported an error. A peer that has lost its power or its network is not noticed until
// something is sent, unless keep-alives are on.
func (c *Conn) Ended(t *act.Task) (half bool, err error) {
	if c.stream == nil {
		return false, net.ErrClosed
	}
	if stream, ok := As[monitor.CloseNotifier](c); ok {
		return stream.AwaitEnd(t.Waker())
	}
	return false, nil
}
