package listener

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
)

// Internals is for the other packages of Daimon. It is not part of the API: its methods may change with every release.
func (c *Conn) Internals() *internals { return (*internals)(c) }

// internals is a Conn with methods that only packages of this module call.
type internals Conn

// Limits returns the limits of the connection, with the defaults in place of zeros.
func (i *internals) Limits() Limits { return i.settings.limits }

// Filtered returns an action that runs the filters, one after the other. If they have not finished within the given
// time in total, it fails with an error that wraps os.ErrDeadlineExceeded; 0 means 10 s. If a filter has closed the
// connection, it fails with net.ErrClosed. A shutdown request is passed on to the present filter. The caller owns the
// connection.
func (i *internals) Filtered(within time.Duration, filters ...Filter) act.Action {
	if within == 0 {
		within = 10 * time.Second
	}
	return Within(within, &filtered{conn: (*Conn)(i), rest: filters})
}

// WriteShared is Write of bytes that must not be changed afterwards, such as one message to many connections. Bytes
// that the kernel does not take at once are not copied, but referred to, unless they are few or gathered with other
// bytes of this turn. TLS encrypts for each connection, so there it is Write.
func (i *internals) WriteShared(p []byte) (int, error) {
	if i.stream == nil {
		return 0, net.ErrClosed
	}
	return (*Conn)(i).write(p, true)
}

// CloseWithin is Close with another bound than Limits.Linger.
func (i *internals) CloseWithin(linger time.Duration) error { return (*Conn)(i).close(linger) }

// EndsInBand reports whether the protocol itself marks the end of the peer's data, as TLS does with close_notify. Then
// Peek returns that end, and Ended only sees the end of the Stream below.
func (i *internals) EndsInBand() bool {
	_, is := As[interface{ EndsInBand() }]((*Conn)(i))
	return is
}
