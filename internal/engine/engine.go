// Package engine is between the engine of package monitor, over the system or a simulated one, and the packages that use it.
// Nothing of it is for users.
package engine

import (
	"errors"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// Engine makes the connections of one scheduler: it listens and dials, and watches other descriptors. Package monitor
// has it.
//
// All methods of an Engine and of the values that it returns belong to the scheduler's thread, except where stated, and
// none blocks.
type Engine interface {
	// Listen begins to accept connections. The error need not name the address: the caller adds it.
	Listen(o ListenOptions) (Acceptor, error)
	// Dial begins to connect to addr, a *net.TCPAddr or *net.UnixAddr. Small segments are sent at once (TCP_NODELAY).
	Dial(addr net.Addr, o ConnOptions) (PendingConn, error)
	// Packets opens a socket for datagrams.
	Packets(o PacketOptions) (PacketSocket, error)
	// Watch begins to call report for the events of a descriptor, until stop is called: see monitor.Watch. The caller
	// goes on owning the descriptor. A report may come without a cause. A report of 0 means that the descriptor was
	// closed, and is the last one.
	Watch(fd int, want netpoll.Ready, report func(netpoll.Ready)) (stop func() error, err error)
}

// Stream is monitor.Stream, which documents it: this package stands below monitor.
type Stream interface {
	Lend(most int) ([]byte, error)
	Receive(p []byte) (int, error)
	Send(head, p []byte, high int) (int, error)
	Queued() (int, error)
	AwaitInput(w act.Waker)
	AwaitOutput(w act.Waker, low int)
	Wake()
	CloseWrite() error
	Close(linger time.Duration)
	Abort()
	LocalAddr() net.Addr
	PeerAddr() net.Addr
}

// Mover is a Stream that can leave its scheduler for another one of the same Group. A Stream over another one is a Mover
// only if it takes its own state along.
type Mover interface {
	Stream
	// Release takes the Stream from its scheduler, to which it is closed from then on: what waits is woken. It fails, and
	// nothing has changed, with ErrInUse unless it is idle, or with errors.ErrUnsupported if a Stream below it cannot.
	Release() (Moved, error)
}

// Moved is a connection without a scheduler. What comes for it waits in the kernel. It is used on one goroutine at a
// time, and Adopt or Close is called once.
type Moved interface {
	// Adopt makes a Stream of it on the thread of s. After an error it is closed.
	Adopt(s *act.Scheduler) (Stream, error)
	// Close closes it. Any goroutine, even when all schedulers have ended.
	Close()
}

// ErrInUse is the error of a Mover that is not idle.
var ErrInUse = errors.New("monitor: a connection that is not idle does not move")

// ConnOptions are the options of connections, accepted and dialled.
type ConnOptions struct {
	// KeepAlive is the time of silence after which the kernel probes a TCP peer; 0 means a minute, less than 0 never.
	KeepAlive time.Duration
	// ReceiveBuffer and SendBuffer are the sizes of the kernel's buffers for each connection, in bytes (SO_RCVBUF,
	// SO_SNDBUF); 0 leaves them to the kernel.
	ReceiveBuffer, SendBuffer int
}

// ListenOptions says where and how an Engine listens.
type ListenOptions struct {
	ConnOptions
	// Limiter bounds the connections; nil means no bound.
	Limiter *Limiter
	// Addr is a *net.TCPAddr or a *net.UnixAddr. A nil IP means all addresses of the machine, port 0 a free port that
	// the kernel chooses. No other program, not even another instance of this one, can listen at the same address; a
	// Unix socket file at which nothing listens is replaced.
	Addr net.Addr
	// Sibling is an open Acceptor on another scheduler, whose address this one joins; only the type of Addr then counts.
	// For TCP each scheduler has a socket, over which the kernel spreads the connections; on macOS, NetBSD and OpenBSD,
	// which do not spread them, one socket is for all. For Unix one socket is for all, and is unlinked when the last
	// Acceptor is closed.
	Sibling Acceptor
	// Inherited is the descriptor of a socket that another OS process has made, and that netpoll.System.Adopt has
	// prepared; 0 means none. The Engine closes it, even after an error. Addr and Sibling are then ignored. With Shared
	// it is for all schedulers: the others name this Acceptor as their Sibling.
	Inherited int
	// Shared says that Inherited is for all schedulers.
	Shared bool
	// Backlog bounds the connections that wait to be accepted, in each socket; 0 means as many as the kernel allows.
	Backlog int
	// Prepare, if not nil, is called with the path of a new Unix socket file before anyone can connect, to change its
	// mode, for example. If it fails, the file is removed and Listen returns the error.
	Prepare func(path string) error
}

// Acceptor accepts the connections of one listening socket, or of a scheduler's share of it.
type Acceptor interface {
	// Accept returns the next connection. It may fail with
	//
	//	monitor.ErrWouldBlock   there is none yet, or the limiter has no place: Await, and call again
	//	ErrConnAborted          one connection was lost; the next may be fine: call again
	//	ErrShortage             descriptors or memory are short: Await, with a timer, and call again
	//	net.ErrClosed           there will be no more
	//
	// The last three may be wrapped, with the kernel's error. Any other error is final.
	Accept() (Stream, error)
	// Await keeps w, in place of an earlier one, and wakes it once when Accept may succeed. After ErrShortage that is
	// when this scheduler has freed a descriptor; descriptors that others free are not noticed.
	Await(w act.Waker)
	// Stop stops accepting. Accept still returns the connections that have arrived by now, as far as there are places
	// and resources for them, and then net.ErrClosed, even if clients go on connecting. given says that the socket is given
	// away and another OS process listens on it: waiting connections are left to that process, except ones whose arrival
	// only this process was told of, and Close does not remove a Unix socket file.
	Stop(given bool)
	// Close stops listening. Connections that were not accepted are reset. A second Close does nothing.
	Close() error
	// Addr returns the address, even after Close; never nil. Any goroutine.
	Addr() net.Addr
	// Descriptor returns the descriptor of the listening socket, which it may share with siblings. After Close the
	// error is net.ErrClosed. Any goroutine, but not at the same time as Close.
	Descriptor() (int, error)
	// Crowded reports whether the latest Accept returned no connection for lack of a place or a descriptor, and a
	// connection waits. A service then evicts an idle connection.
	Crowded() bool
	// Refusals returns how often Accept returned no connection for lack of a place (full), and for lack of descriptors,
	// memory or permission (short).
	Refusals() (full, short uint64)
}

// PendingConn is a connection that is being established.
type PendingConn interface {
	// Stream returns the connection, or monitor.ErrWouldBlock until the connect has succeeded or failed. Any other error
	// is final.
	Stream() (Stream, error)
	// Await keeps w, in place of an earlier one, and wakes it when the connect has succeeded or failed.
	Await(w act.Waker)
	// Close gives the connect up. After Stream has returned the connection it does nothing.
	Close()
}

// Errors of Acceptor.Accept.
var (
	ErrConnAborted = errors.New("monitor: a connection was lost before it was accepted")
	ErrShortage    = errors.New("monitor: out of resources")
)
