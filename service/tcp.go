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

// TCP is a service on a TCP port. Each scheduler has a listening socket of its own, over which the kernel spreads the
// connections; a connection stays on the scheduler that accepted it. No other program can take the same port, not even
// another instance of this one. Set Address and Handler, and pass the method Setup to act.Run.
//
// macOS, NetBSD and OpenBSD do not spread connections. There all schedulers share one listening socket, as with [Unix]:
// each arrival wakes the idle schedulers, and the first of them gets it. On DragonFly the spreading was not tested: one
// scheduler may get no connections.
//
// When shutdown begins, it accepts the connections that have arrived, and no more; open connections go on as AtEnd and
// their actions decide. A TCP is used by pointer, by one Group at a time.
type TCP struct {
	// Name matches sockets that another OS process has made, such as systemd or an older version of the program: see
	// package upgrade. It may be empty.
	Name string
	// Address is "host:port". Without a host, all addresses are meant; port 0 means a free port that the kernel
	// chooses: see Addr.
	Address string
	// Handler returns the action of a connection. It is called in the first turn of the connection's task, on the
	// scheduler's thread. When the action is Done or Failed, the connection is closed as by Conn.Close; after a panic
	// or a drop it is aborted. A nil action closes it at once. If the action fails because its peer has gone
	// (ECONNRESET, EPIPE and the like), or with net.ErrClosed because this side has closed or aborted the connection,
	// that is logged at debug level only. To the peer a failure looks like a normal close: if that would mislead it,
	// call Conn.Abort before failing.
	Handler func(*listener.Conn) act.Action
	// Filters prepare each connection before the Handler, in this order. FilterTimeout bounds all of them together; 0
	// means 10 s. A connection that one of them refuses is closed, and logged at debug level; a panic has the same
	// effect as in a handler.
	Filters       []listener.Filter
	FilterTimeout time.Duration
	// MaxConns bounds the connections of all schedulers together, including lingering ones. At the bound accepting
	// pauses and the kernel's backlog fills. Less than 0 means no bound. 0 means the smallest of: the descriptors that
	// the process may have (RLIMIT_NOFILE), less 24 and a 64th; half of its memory, divided by Limits.Read +
	// Limits.High; 2^20. The result is divided by Limits.Conns, and logged at info level, which the default Logger of
	// act.Config leaves out. The memory is the least of the machine's, the control group's (cgroup) and GOMEMLIMIT.
	// With the default Limits that is 256 connections in 64 MiB and 4096 in 1 GiB. The default does not take other
	// services into account.
	MaxConns int
	// ReclaimAfter is how long a connection must have been idle before it may be evicted for a client that waits: at
	// MaxConns, or because the kernel has no descriptor or no memory for another connection. The longest idle
	// connection is evicted first: on the scheduler that the client has come to, or if it has none, on another.
	// Connections of other services are not evicted. The action is closed, and the peer sees a normal close; if it has
	// sent something in the meantime, the connection stays.
	//
	// 0 means 500 ms, and only for actions that know when they are idle: by their method IdleSince() (time.Duration,
	// bool), see [listener.Conn.IdleSince]. Connections of package httpd are idle before the first request and between
	// two requests, unless part of the answer is queued; a handshake of package secure is idle while its client sends
	// nothing. For other actions a service cannot know whether they wait for a further request or in the middle of one.
	// A positive ReclaimAfter applies to them too: they are idle while no byte goes either way, none is unread and none
	// is queued. So it has to be longer than an answer may take. Less than 0 means never.
	//
	// Eviction needs an engine that reports that a client waits, see [monitor.Acceptor]. The default engine does; with
	// an engine that does not, such as the completion engine of package sim, idle connections are not evicted.
	//
	// It costs a connection no memory. While a client waits, and no idle connection is known, the tasks of the scheduler
	// are searched, every 100 ms.
	ReclaimAfter time.Duration
	// AtEnd says what happens to open connections when shutdown begins. 0 means FinishRequest.
	AtEnd Ending
	// Backlog bounds the connections that wait to be accepted, for each listening socket; 0 means as many as the kernel
	// allows.
	Backlog int
	// Limits are the limits of each connection.
	Limits listener.Limits
	// KeepAlive is the time of silence after which the kernel probes a peer, and the time between two probes; Linux
	// gives up at the ninth. 0 means a minute, less than 0 never.
	KeepAlive time.Duration
	// Delay leaves Nagle's algorithm on (RFC 896). There is seldom a reason: a Conn gathers the writes of a turn.
	Delay bool

	server
}

// Setup begins to listen on one scheduler. It is a set-up function: pass it to [act.Run] or act.Group.Run, which call
// it on the scheduler's thread. The error is one sentence that names the address.
func (v *TCP) Setup(s *act.Scheduler) error {
	return v.setUp(s, v.Address, config{
		listen:   monitor.ListenOptions{Backlog: v.Backlog, Delay: v.Delay, ConnOptions: monitor.ConnOptions{KeepAlive: v.KeepAlive}},
		resolve:  v.resolve,
		maxConns: v.MaxConns, limits: v.Limits, handler: v.Handler,
		filters: v.Filters, filterTimeout: v.FilterTimeout, reclaimAfter: v.ReclaimAfter, atEnd: v.AtEnd,
	})
}

// Handover is for package upgrade, which passes the listening sockets to the program that replaces this one.
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
