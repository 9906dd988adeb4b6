package netpoll

import (
	"net"
	"net/netip"
	"os"
)

// System makes the socket calls of the operating system, without blocking. The zero System is ready for use.
//
// Descriptors are non-blocking and close-on-exec. Errors are bare syscall.Errnos, to be compared with ==; EAGAIN is
// among them. A call that a signal interrupts is repeated inside. Methods are for any goroutine, but if a descriptor is
// closed while another call uses it, that call may use a new descriptor with the same number.
type System struct{}

const (
	// SpreadsTCP reports whether the kernel spreads connections over the listening sockets of a TCP port.
	SpreadsTCP = spreadsTCP
	// SpreadsPackets reports whether the kernel spreads the peers of a port of UDP over its sockets.
	SpreadsPackets = spreadsTCP
	// InheritsKeepAlive reports whether an accepted socket has the SetKeepAlive of the listening one.
	InheritsKeepAlive = inheritsKeepAlive
)

// ListenTCP listens at addr and returns the descriptor. With port 0 the kernel chooses a port (see LocalAddr). [::]
// takes IPv4 too where the kernel can (not on OpenBSD); an IPv4 address mapped into IPv6 is IPv4. The
// error is EINVAL for the zero address and ENODEV for an unknown zone. The backlog bounds the connections that wait to
// be accepted. The kernel (net.core.somaxconn, kern.ipc.somaxconn) reduces larger values, and allows as many as it can
// for 0 or less.
//
// The socket has the address to itself: the error is EADDRINUSE if any socket listens there, even one of another
// instance of the program that started at the same moment. An address whose last connections are still in TIME_WAIT is
// free. Further sockets of the program join it with [System.JoinTCP].
func (System) ListenTCP(addr netip.AddrPort, backlog int) (fd int, err error) {
	return listenTCP(addr, true, backlog)
}

// JoinTCP is [System.ListenTCP] at an address where a socket of this program listens already, so that a server has a
// listening socket for each of its threads.
//
// Linux and FreeBSD (SO_REUSEPORT_LB) spread the connections over the siblings. On FreeBSD two instances that start at
// the same moment may both succeed. Darwin, NetBSD and OpenBSD do not spread: one sibling may get all. See [SpreadsTCP].
func (System) JoinTCP(addr netip.AddrPort, backlog int) (fd int, err error) {
	return listenTCP(addr, false, backlog)
}

// Accept accepts the next connection and returns its descriptor. Besides EAGAIN there are three kinds of errors: of the
// connection, such as ECONNABORTED, after which the next may be fine (accept(2)); of resources, EMFILE, ENFILE, ENOBUFS
// and ENOMEM, after which a connection may still wait, which no further edge reports; and of fd.
func (System) Accept(fd int) (int, error) { return accept(fd) }

// Receive receives into p and returns how many bytes. It returns (0, io.EOF) at the end of the stream, (0, EAGAIN) if
// nothing has arrived, and (0, nil) for an empty p, without a call. With Priority the caller has to call it twice, see
// the rule in the package documentation: doing so here would double the price of every EAGAIN (450 to 850 ns,
// measured).
func (System) Receive(fd int, p []byte) (int, error) { return receive(fd, p) }

// Send sends head and then p in one call, and returns how many bytes of both together were taken. Either may be empty;
// if both are, there is no call. If the peer has closed the connection, the error is EPIPE, without a SIGPIPE.
func (System) Send(fd int, head, p []byte) (int, error) {
	release()
	return send(fd, head, p)
}

// SendFile sends up to n bytes of f from offset on, and returns how many were taken; 0 is the end of the file. The
// file's own position is neither used nor moved. EINVAL, ENOSYS, EOPNOTSUPP and ENOTSUP mean that this file, or any
// file on this system (NetBSD, OpenBSD), has to be read and given to Send; any other error may be of the connection or
// of the file. If the peer has closed the connection, the error is EPIPE, with a SIGPIPE, which Go's runtime ignores
// unless the program asks for it.
//
// It is the only call here that may sleep, until the disk has delivered bytes that are not in memory. f should be a
// regular file: os.File.Fd makes pipes and sockets block.
func (System) SendFile(fd int, f *os.File, offset int64, n int) (int, error) {
	release()
	return sendFile(fd, f, offset, n)
}

// CloseWrite closes the sending side; receiving goes on. ENOTCONN means that the peer has reset the connection, or that
// both directions have ended.
func (System) CloseWrite(fd int) error { return closeWrite(fd) }

// Close closes fd. The descriptor is released whatever Close returns. EINTR is neither retried nor returned: the
// descriptor was released before (close(2)), and a second close could hit a connection that has just got the same
// number.
func (System) Close(fd int) error { return closeFD(fd) }

// LocalAddr returns the address of this end, a *net.TCPAddr or *net.UnixAddr; nil if the kernel does not know it. A
// Unix socket without a name has the Name "".
func (System) LocalAddr(fd int) net.Addr { return localAddr(fd) }

// PeerAddr returns the address of the other end, as [System.LocalAddr] does for this end. Linux still knows it after a
// reset.
func (System) PeerAddr(fd int) net.Addr { return peerAddr(fd) }

// PeerAddrPort returns the [System.PeerAddr] of a TCP socket as a value; the zero value if it is not known, or after a
// reset. On Linux it allocates nothing, which matters for a list of all connections.
func (System) PeerAddrPort(fd int) netip.AddrPort { return peerAddrPort(fd) }
