package netpoll

import (
	"net"
	"net/netip"
	"os"
	"time"
)

// System makes the socket calls of the operating system.
//
// Descriptors are non-blocking and close-on-exec. Errors are the bare syscall.Errno, to be compared with ==; EAGAIN is
// among them. A call interrupted by a signal is made again inside. Methods are for any goroutine, but if a descriptor
// is closed while another call uses it, that call may use a new one of the same number.
type System struct{}

const (
	// SpreadsTCP reports whether the system spreads connections over the listening sockets of a TCP port.
	SpreadsTCP = spreadsTCP
	// InheritsKeepAlive reports whether an accepted socket has the SetKeepAlive of the listening one.
	InheritsKeepAlive = inheritsKeepAlive
)

// ListenTCP listens at addr, port 0 being one of the system's choice (ask LocalAddr). [::] takes IPv4 too where the
// system can (not on OpenBSD and DragonFly); an IPv4 address mapped into IPv6 is IPv4. EINVAL is the zero address,
// ENODEV an unknown zone. The backlog bounds the connections that wait to be accepted. The system (net.core.somaxconn,
// kern.ipc.somaxconn) cuts larger values, and allows as many as it can for 0 or less.
//
// The socket takes the address alone: EADDRINUSE if any socket listens there, even one of another instance of the program
// that has started at the same moment. An address whose last connections are still in TIME_WAIT is free. Further sockets
// of the program get there with [System.JoinTCP].
func (System) ListenTCP(addr netip.AddrPort, backlog int) (fd int, err error) {
	return listenTCP(addr, true, backlog)
}

// JoinTCP is ListenTCP at an address where a socket of this program listens already: one server has a listening socket for
// each of its threads.
//
// Linux, DragonFly and FreeBSD (SO_REUSEPORT_LB) spread the connections over the siblings. On FreeBSD two instances
// that start at the same moment may both be let in. Whether the first of DragonFly, which shares its port late, gets any
// was not tried. Darwin, NetBSD and OpenBSD do not spread: one sibling may get all. See [SpreadsTCP].
func (System) JoinTCP(addr netip.AddrPort, backlog int) (fd int, err error) {
	return listenTCP(addr, false, backlog)
}

// ListenUnix listens at a path, with a backlog as that of ListenTCP. A socket file at which nothing listens is replaced. prepare,
// if it is not nil, is called with the path of a socket file that has just been made, before anybody can connect; its error is
// that of ListenUnix, and the file is removed. EADDRINUSE
// says that a program listens, ENOTSOCK that another file lies there, ENAMETOOLONG that the path does not fit (107
// bytes on Linux, 103 elsewhere). On Linux a path that begins with @ or NUL is an abstract name, with no file. Close
// does not remove the file.
//
// Whether a program listens is found out by connecting, so a live server accepts a connection that ends at once. Two
// programs that start at the same time are ordered by a lock (flock) of the directory, waited for at most a second;
// without it (the directory is not readable, or another process holds the lock) the last to start could take the path
// from another that has bound and does not listen yet. On kqueue a live server with a full backlog refuses as a dead
// one does; it is asked ten times within a tenth of a second.
func (System) ListenUnix(path string, backlog int, prepare func(path string) error) (fd int, err error) {
	return listenUnix(path, backlog, prepare)
}

// Adopt prepares fd, a listening socket that another process has made, for the other methods: it is non-blocking, as all
// descriptors of that socket, and close-on-exec then. It returns the address. spread reports whether further sockets may join
// its port (see [SpreadsTCP]), by JoinTCP. EINVAL: it does not listen; EPROTONOSUPPORT: it is not a stream socket;
// EAFNOSUPPORT: it is neither TCP nor Unix; EBADF and ENOTSOCK: it is no socket.
func (System) Adopt(fd int) (addr net.Addr, spread bool, err error) { return adopt(fd) }

// Duplicate returns another descriptor of what fd is (dup(2)), close-on-exec as all.
func (System) Duplicate(fd int) (int, error) { return duplicate(fd) }

// Unlink removes the file of a Unix socket at which nothing listens, and leaves any other file alone.
func (System) Unlink(path string) error { return unlinkUnix(path) }

// Accept takes the next connection. Besides EAGAIN there are three kinds of errors: of the connection, such as
// ECONNABORTED, after which the next may be fine (accept(2)); of resources, EMFILE, ENFILE, ENOBUFS and ENOMEM, after
// which a connection may still wait, which no further edge reports; and of fd.
func (System) Accept(fd int) (int, error) { return accept(fd) }

// Waiting reports whether a connection waits to be accepted, without taking it: a server that has no place for one asks
// whether a client wants it before it makes room.
func (System) Waiting(fd int) bool { return waiting(fd) }

// DialTCP begins to connect to addr. If done is false the connect is in progress: add fd to a Poller,
// wait for Out or Error, and ask SocketError how it went. After an error there is no descriptor.
func (System) DialTCP(addr netip.AddrPort) (fd int, done bool, err error) { return dialTCP(addr) }

// DialUnix connects to the socket at path, as DialTCP does. EAGAIN is an error: the backlog of the
// listener is full, and no event reports when it no longer is.
func (System) DialUnix(path string) (fd int, done bool, err error) { return dialUnix(path) }

// SocketError takes the pending error of a socket (SO_ERROR), nil if there is none. The next call no longer sees it.
func (System) SocketError(fd int) error { return socketError(fd) }

// Receive receives into p. The end of the stream is (0, io.EOF), nothing there yet is (0, EAGAIN), and an empty p is
// (0, nil) without asking. After Priority the caller has to ask twice, see the package's rule: here that would double the
// price of every EAGAIN (450 to 850 ns, measured).
func (System) Receive(fd int, p []byte) (int, error) { return receive(fd, p) }

// Send sends head and then p in one call, and returns how many bytes of both together were taken. Either
// may be empty; without both nothing is called. A connection closed by the peer is EPIPE, not SIGPIPE.
func (System) Send(fd int, head, p []byte) (int, error) {
	release()
	return send(fd, head, p)
}

// SendFile sends up to n bytes of f from offset on, and returns how many were taken; 0 is the end of the file. The
// file's own position is neither used nor moved. EINVAL, ENOSYS, EOPNOTSUPP and ENOTSUP say that this file, or any on
// this system (NetBSD, OpenBSD), has to be read and given to Send; any other error may be the connection's or the
// file's. A connection closed by the peer is EPIPE, and also SIGPIPE, which Go's runtime ignores unless a program asks
// for it.
//
// It is the one call here that may sleep: until the disk has given what is not in memory. f should be a regular file:
// os.File.Fd makes pipes and sockets block.
func (System) SendFile(fd int, f *os.File, offset int64, n int) (int, error) {
	release()
	return sendFile(fd, f, offset, n)
}

// CloseWrite ends what this side sends; receiving goes on. ENOTCONN: the peer has reset, or both directions have ended.
func (System) CloseWrite(fd int) error { return closeWrite(fd) }

// Close closes fd, which is gone whatever is returned. EINTR is neither retried nor returned: the descriptor was
// released before (close(2)), and a second close could hit a connection that has just got the same number.
func (System) Close(fd int) error { return closeFD(fd) }

// Reset closes fd and throws away what was not yet sent: a TCP peer sees ECONNRESET, on some systems after what had
// arrived. A Unix peer sees the end of the stream, or ECONNRESET if fd had unread data.
func (System) Reset(fd int) error { return reset(fd) }

// LocalAddr is the address of this end, a *net.TCPAddr or *net.UnixAddr; nil if the system does not know. A Unix socket
// without a name has the Name "".
func (System) LocalAddr(fd int) net.Addr { return localAddr(fd) }

// PeerAddr is the address of the other end, as LocalAddr is of this. Linux still knows it after a reset.
func (System) PeerAddr(fd int) net.Addr { return peerAddr(fd) }

// PeerAddrPort is the PeerAddr of a TCP socket as a value; the zero value if it is not known, also after a reset. On Linux it
// allocates nothing, for a view of all connections.
func (System) PeerAddrPort(fd int) netip.AddrPort { return peerAddrPort(fd) }

// SetNoDelay sends small segments at once (true) or gathers them while earlier ones are not
// acknowledged (TCP_NODELAY). The system's default, which Accept and DialTCP leave, is to gather.
func (System) SetNoDelay(fd int, on bool) error { return setNoDelay(fd, on) }

// SetKeepAlive has a TCP connection probed after idle without a sign of life, and every idle again until
// the system's number of probes is reached; rounded up to seconds, 0 or less switches probing off.
// OpenBSD has no times per connection: there it only switches.
func (System) SetKeepAlive(fd int, idle time.Duration) error { return setKeepAlive(fd, idle) }

// SetBuffers sets the sizes of fd's buffers in bytes (SO_RCVBUF, SO_SNDBUF); 0 leaves one to the system, which adapts it
// (TCP). What a peer does not read, or sends and nobody reads, takes that much of the kernel's memory for each connection.
// The system may cut them (net.core.rmem_max and wmem_max) and adds what it needs for itself: Linux doubles them. TCP
// connections inherit those of the listening socket, Unix connections do not everywhere.
func (System) SetBuffers(fd, receiving, sending int) error {
	return setBuffers(fd, receiving, sending)
}
