package monitor

import (
	"errors"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/netpoll"
)

// Engine makes the connections of one scheduler: it listens and dials, and watches other descriptors. The default is a
// readiness engine, over epoll or kqueue; another may be a completion engine, as one over io_uring would be. Packages
// listener and service know only these interfaces. All methods of an Engine and of what it returns belong to the scheduler's
// thread, except where stated, and none blocks. If an Engine has a method Close() error, the scheduler calls it when it is
// closed; if it has a method Drop(), the scheduler calls that when an order drops what is left, and lingering streams have to
// be aborted.
type Engine interface {
	// Listen begins to accept connections. The error names no address.
	Listen(o ListenOptions) (Acceptor, error)
	// Dial begins to connect to addr, a *net.TCPAddr or *net.UnixAddr. Small segments go out at once (TCP_NODELAY).
	Dial(addr net.Addr, o ConnOptions) (PendingConn, error)
	// Watch begins to call report for the events of a descriptor that the caller goes on owning, until stop is called: see the
	// function [Watch]. Reports may be of nothing. With 0 the descriptor was closed, and there are no more.
	Watch(fd int, k netpoll.Kind, report func(netpoll.Ready)) (stop func() error, err error)
}

// ConnOptions are the options of connections, those that are accepted and those that are dialled.
type ConnOptions struct {
	// KeepAlive is the time of silence after which the system probes a TCP peer; 0 means a minute, and less never.
	KeepAlive time.Duration
	// ReceiveBuffer and SendBuffer are the sizes of the system's buffers for each connection, in bytes (SO_RCVBUF,
	// SO_SNDBUF); 0 leaves them to the system.
	ReceiveBuffer, SendBuffer int
	// Limiter bounds the connections; nil means no bound. A Dial without a place fails with ErrFull.
	Limiter *ConnLimiter
}

// ListenOptions say where and how an Engine listens.
type ListenOptions struct {
	ConnOptions
	// Addr is a *net.TCPAddr, where no IP means all addresses of the machine and port 0 one of the system's choice, or a
	// *net.UnixAddr. No other program, not even another instance of this one, can listen at the same address; a Unix
	// socket file at which nothing listens is replaced.
	Addr net.Addr
	// Sibling is an Acceptor of the same kind of engine on another scheduler, still open, whose address this one joins;
	// of Addr only the type then counts. TCP: a socket for each scheduler, over which the system spreads the
	// connections; on macOS, NetBSD and OpenBSD, which do not, one socket for all. Unix: one socket for all, unlinked when
	// the last Acceptor is closed.
	Sibling Acceptor
	// Inherited is the descriptor of a socket that another process has made, and that netpoll.System.Adopt has prepared; 0: none. The
	// Engine closes it, also after an error. Addr and Sibling do not count then. With Shared it is for all schedulers: the
	// others name this Acceptor as their Sibling.
	Inherited int
	Shared    bool
	// Backlog bounds the connections that wait to be accepted, in each socket; 0 means as many as the system allows.
	Backlog int
	// Delay leaves Nagle's algorithm on (RFC 896).
	Delay bool
	// Prepare, if there is one, is called with the path of a Unix socket file that has just been made, before anybody can
	// connect: to change its mode, for example. Its error is that of Listen, and the file is removed.
	Prepare func(path string) error
}

// Acceptor accepts the connections of one listening socket, or of a scheduler's part in it.
type Acceptor interface {
	// Accept returns the next connection. It may fail with
	//
	//	ErrWouldBlock   there is none yet, or the limiter has no place: Await, and call again
	//	ErrConnAborted  one connection was lost; the next may be fine: call again
	//	ErrShortage     descriptors or memory are short: Await, with a timer, and call again
	//	net.ErrClosed   there will be no more
	//
	// The last three may be wrapped, with the system's error. Any other error is final.
	Accept() (Stream, error)
	// Await keeps w, in place of an earlier one, and wakes it once when Accept may do better than it last did. After
	// ErrShortage that is when this scheduler has freed a descriptor; others may be freed unnoticed.
	Await(w act.Waker)
	// Stop begins the end. Accept still returns the connections that had arrived by now, as far as there are places and
	// resources for them, and then net.ErrClosed. A completion engine waits for accepts that are under way
	// (ErrWouldBlock). The end comes also if clients go on connecting. If the socket is given away, another process listens on
	// it: the connections that wait are left to that process, except those whose arrival only this one was told of, and Close
	// does not remove a Unix socket file.
	Stop(given bool)
	// Close stops listening. Connections that were not accepted are reset. A second Close does nothing.
	Close() error
	// Addr returns the address, also after Close; never nil. Any goroutine.
	Addr() net.Addr
	// Descriptor returns that of the listening socket, which may be the same as that of a sibling. After Close the error is
	// net.ErrClosed; errors.ErrUnsupported says that the socket cannot be given away. Any goroutine, but not at the same time as
	// Close.
	Descriptor() (int, error)
	// Crowded reports whether the last Accept gave nothing for want of a place or a descriptor while a connection waits. A
	// service then closes an idle connection. An engine that does not know returns false.
	Crowded() bool
	// Refusals returns how often Accept had no connection for want of a place, and of descriptors, memory or permission.
	Refusals() (full, short uint64)
}

// PendingConn is a connection that is being established.
type PendingConn interface {
	// Stream returns the connection, or ErrWouldBlock as long as it is not decided. Any other error is final.
	Stream() (Stream, error)
	// Await keeps w, in place of an earlier one, and wakes it when the connection is decided.
	Await(w act.Waker)
	// Close gives up, unless the Stream was taken.
	Close()
}

// Errors of an Engine and its streams.
var (
	// ErrWouldBlock: nothing can be done at once. Await, and call again.
	ErrWouldBlock = errors.New("monitor: would block")
	// ErrFull: a ConnLimiter has no place.
	ErrFull = errors.New("monitor: too many connections")
	// ErrConnAborted: a connection was lost before it was accepted.
	ErrConnAborted = errors.New("monitor: a connection was lost before it was accepted")
	// ErrShortage: descriptors, or memory for connections, are exhausted.
	ErrShortage = errors.New("monitor: out of resources")
)

var engines = act.NewLocal(func(s *act.Scheduler) Engine { return newReadiness(s) })

// EngineOf returns the engine of s. The default engine becomes the Idler of s with the first call, and the error is that
// of opening a poller.
func EngineOf(s *act.Scheduler) (Engine, error) {
	e := engines.Get(s)
	if r, ok := e.(*readiness); ok {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// SetEngine gives s another engine than the default. It panics after the first call of EngineOf; a set-up function that
// comes before those of services is the place for it. An engine must also be
// the Idler of s: call SetIdler of its Internals as well. sim/completions.go is an example.
func SetEngine(s *act.Scheduler, e Engine) { engines.Put(s, e) }
