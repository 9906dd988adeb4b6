package listener

import (
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/monitor"
)

// Ended is for a task that waits for something else than input, a timer say, and wants to hear when its peer has
// gone. half tells that the peer has closed its side: it will send nothing more than what may be unread, and it
// may still be reading. err tells why the connection is broken: what the system reports, also late of what was
// written, or net.ErrClosed. With an error half says nothing.
//
// t is woken once when one of the two becomes true that was not, so behind a half by a later reset too, and when
// the connection is closed by another task. Bytes that arrive do not wake it, unlike Blocked, which wakes at once
// while there are any; nothing is received, and nothing unread is lost. With an error there is nothing left to
// wait for. A Conn has one place for who waits to read or for the end: the later call counts. As any Waker it is
// good for one turn: ask again in each.
//
// Over a stream that is no monitor.CloseNotifier it is false and nil, and t is not woken. It costs a system call only if
// the system has said that something is wrong. Until something is sent, nobody hears of a peer that has lost its
// power or its network, unless keep-alives ask.
func (c *Conn) Ended(t *act.Task) (half bool, err error) {
	if c.stream == nil {
		return false, net.ErrClosed
	}
	if stream, ok := as[monitor.CloseNotifier](c.stream); ok {
		return stream.AwaitEnd(t.Waker())
	}
	return false, nil
}
