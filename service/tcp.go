package service

import (
	"errors"
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// TCP is a service on a TCP port. Each scheduler has a listening socket of its own, over which the system spreads
// the connections; a connection stays on the scheduler that accepted it. No other program can take the same port,
// not even another instance of this one.
//
// macOS, NetBSD and OpenBSD do not spread connections. There all schedulers share one listening socket, as with [Unix]:
// each arrival wakes the schedulers that are idle, and the first to come gets it. On DragonFly the spreading was not
// tried: one scheduler may get no connections.
//
// On an order it stops accepting, after taking the connections that had arrived; connections go on as their actions
// decide. It is used by pointer, by one Group at a time.
type TCP struct {
	// Name is for sockets that another process has made, such as systemd or an older program: see package upgrade. It may be empty.
	Name string
	// Address is "host:port"; no host means all addresses, and port 0 one of the system's choice: see Addr.
	Address string
	// Handler makes the action of a connection, in its first turn. When that is Done or Failed the connection is closed
	// as by Conn.Close; after a panic or a drop it is aborted. A nil action closes it at once. An action that fails
	// because its peer has gone (ECONNRESET, EPIPE and the like), or with net.ErrClosed because this side has closed or
	// aborted the connection, is logged at level debug only. To the peer a failure looks like an orderly end: if that would
	// mislead it, call Conn.Abort before failing.
	Handler func(*listener.Conn) act.Action
	// Filters prepare each connection before the Handler, in this order, within FilterTimeout for all together; 0 means
	// 10 s. A connection that one of them refuses is closed, and logged at debug level; a panic is treated as one of a
	// handler.
	Filters       []listener.Filter
	FilterTimeout time.Duration
	// MaxConns bounds the connections of all schedulers together, lingering ones included; at the bound accepting
	// pauses and the system's backlog fills. Less than 0 means no bound. 0 takes the smallest of: the descriptors that the
	// process may have (RLIMIT_NOFILE), less 24 and a 64th; half of its memory, divided by Limits.Read + Limits.High;
	// 2^20. The result is divided by Limits.Conns, and logged at level Info, which the default Logger of act.Config leaves
	// out. The memory is that of the machine, of the control group (cgroup) or GOMEMLIMIT, the least of them. With the
	// default Limits that is 256 connections in 64 MiB and 4096 in 1 GiB. The default knows nothing of other services.
	MaxConns int
	// ReclaimAfter is how long a connection must have been idle before it is closed for a client that waits: at MaxConns, or
	// because the system has no descriptor or no memory for another connection. The one that has been idle for longest is the
	// first to go: of the scheduler that the client has come to, or if that has none, of another; other services make no room.
	// Its action is closed, and the peer sees an orderly end; one that has sent something meanwhile stays.
	//
	// 0 applies to actions that know when they are idle, from their method IdleSince() (time.Duration, bool), see
	// [listener.Conn.IdleSince]: those of package httpd are between two requests, if nothing of the answer is queued, and
	// before the first, and a handshake of package secure is while its client sends nothing. It means 500 ms.
	// Of other actions a service cannot know whether they wait for a further request or in the middle of one. A positive
	// ReclaimAfter applies to them too: they are idle while no byte goes either way, none is unread and none is queued. So
	// it has to be longer than an answer may take. Less than 0 means never.
	//
	// An engine has to say that a client waits, see [monitor.Acceptor]. That of Daimon does; with an engine that does not,
	// such as the completion engine of package sim, idle connections are not closed.
	//
	// It costs a connection no memory. While a client waits, and no idle connection is known, the tasks of the scheduler
	// are searched, every 100 ms.
	ReclaimAfter time.Duration
	// AtEnd is what becomes of connections under an order to end.
	AtEnd Ending
	// Backlog bounds the connections that wait to be accepted, for each listening socket; 0 is as many as the system
	// allows.
	Backlog int
	// Limits are those of each connection.
	Limits listener.Limits
	// KeepAlive is the time of silence after which the system probes a peer, and again and again; Linux gives up at the
	// ninth. 0 means a minute, and less never.
	KeepAlive time.Duration
	// Delay leaves Nagle's algorithm on (RFC 896). There is seldom a reason: a Conn gathers what is written in a turn.
	Delay bool

	server
}

// Setup listens. It is a set-up function: give it to act.Run or Group.Run. The error is one sentence
// that names the address.
func (v *TCP) Setup(s *act.Scheduler) error {
	return v.setUp(s, v.Address, config{
		listen:   monitor.ListenOptions{Backlog: v.Backlog, Delay: v.Delay, ConnOptions: monitor.ConnOptions{KeepAlive: v.KeepAlive}},
		resolve:  v.resolve,
		maxConns: v.MaxConns, limits: v.Limits, handler: v.Handler,
		filters: v.Filters, filterTimeout: v.FilterTimeout, reclaimAfter: v.ReclaimAfter, atEnd: v.AtEnd,
	})
}

// Handover is for package upgrade, which passes the sockets on to the program that replaces this one.
func (v *TCP) Handover() handover.Listener { return listening{&v.server, v.Name, v.Address, v.resolve} }

func (v *TCP) resolve() (net.Addr, error) {
	if v.Address == "" { // to package net that is any address and port, here it was forgotten
		return nil, errors.New("missing port in address")
	}
	addr, err := net.ResolveTCPAddr("tcp", v.Address)
	if bad := (*net.AddrError)(nil); errors.As(err, &bad) {
		err = errors.New(bad.Err) // Setup names the address
	}
	return addr, err
}
