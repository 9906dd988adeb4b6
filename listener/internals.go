package listener

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// Internals is for the other packages of Daimon. It is not part of the API: its methods may change with every release.
func (c *Conn) Internals() *internals { return (*internals)(c) }

// internals is a Conn with methods that only packages of this module call.
type internals Conn

// Begin makes i, which is zero, a connection over stream: see [NewConn]. So it can be a part of its task's action.
func (i *internals) Begin(s *act.Scheduler, stream monitor.Stream, l Limits, service any) {
	i.stream, i.settings = stream, settingsOf(s, l, service)
}

// Service returns what Begin or SetService was given, nil for a dialled connection. Connections do not pay for it: the
// ones with the same share it.
func (i *internals) Service() any { return i.settings.service }

// SetService sets what Service returns.
func (i *internals) SetService(service any) {
	i.settings = settingsOf(i.settings.cache.s, i.settings.limits, service)
}

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

// Send sends the bytes gathered in this turn, but unlike Flush and Sent it leaves them to a batch of sends, if there is one.
func (i *internals) Send() error { return (*Conn)(i).send() }

// Gathered returns the bytes gathered in this turn, for a caller that appends at most n bytes to them in place of a Write. It
// returns nil if there are none, or if a Write of n bytes might do anything but append.
func (i *internals) Gathered(n int) *[]byte {
	if b := i.buffers; i.stream != nil && b != nil && b.gathers(n) {
		return &b.gather
	}
	return nil
}

// CloseWithin is Close with another bound than Limits.Linger.
func (i *internals) CloseWithin(linger time.Duration) error { return (*Conn)(i).close(linger) }

// EndsInBand reports whether the protocol itself marks the end of the peer's data, as TLS does with close_notify. Then
// Peek returns that end, and Ended only sees the end of the Stream below. It is known even after Abort, for a log.
func (i *internals) EndsInBand() bool {
	_, is := As[interface{ EndsInBand() }]((*Conn)(i))
	return is || i.stream == nil && i.buffers != nil && i.buffers.inBand
}

// Internals is for the other packages of Daimon. It is not part of the API: its methods may change with every release.
func (c *PacketConn) Internals() *packetInternals { return (*packetInternals)(c) }

// packetInternals is a PacketConn with methods that a service calls.
type packetInternals PacketConn

// Socket returns the socket below; nil after Close.
func (i *packetInternals) Socket() engine.PacketSocket { return i.socket }

// Receive returns the packets that have come, as engine.PacketSocket.Receive does.
func (i *packetInternals) Receive() ([]netpoll.Packet, error) {
	in, err := i.socket.Receive()
	i.counts.Received += uint64(len(in))
	return in, err
}

// Flush sends what is queued, as far as there is room, and returns how many packets are left.
func (i *packetInternals) Flush() int {
	(*PacketConn)(i).flush()
	return len(i.queue.packets)
}

// BeginPeer makes p, which is zero, the Peer that has sent in.
func (i *packetInternals) BeginPeer(p *Peer, in *netpoll.Packet) {
	*p = Peer{conn: (*PacketConn)(i), addr: in.Peer, path: in.Path, local: in.Local}
}

// Close sends what is queued, and closes the socket.
func (i *packetInternals) Close() { (*PacketConn)(i).close() }

// Internals is for the other packages of Daimon. It is not part of the API: its methods may change with every release.
func (p *Peer) Internals() *peerInternals { return (*peerInternals)(p) }

type peerInternals Peer

// Put keeps a packet until the task takes it, and reports whether there was room: for at most so many.
func (i *peerInternals) Put(in *netpoll.Packet, most int) bool { return (*Peer)(i).put(in, most) }

// Finish has Receive return net.ErrClosed after what has come.
func (i *peerInternals) Finish() { (*Peer)(i).finish() }

// Ended reports whether nothing more comes.
func (i *peerInternals) Ended() bool { return i.ended }

// Path returns the address of the other end of a Unix socket.
func (i *peerInternals) Path() string { return i.path }

// Unread returns how many packets were not taken.
func (i *peerInternals) Unread() int {
	if i.box == nil {
		return 0
	}
	return len(i.box.packets) - i.box.taken
}
