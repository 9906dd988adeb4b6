package service

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/listener"
)

// Listener is a service that listens at an address, a TCP port or a Unix stream socket, and spawns a task for each
// connection. A connection stays on the scheduler that accepted it. Set Address and Handler, and pass the method Setup
// to act.Run. When shutdown begins, a Listener accepts the connections that have arrived, and no more; open connections
// go on as AtEnd and their actions decide. A Listener is used by pointer, by one Group at a time, and its fields must not
// be changed from Setup on.
//
// Each scheduler has a TCP socket of its own, over which the kernel spreads the connections. No other program can take
// the same port, not even another instance of this one. macOS, NetBSD and OpenBSD do not spread connections. There all
// schedulers share one listening socket, as for a Unix socket everywhere: each arrival wakes idle schedulers, and the
// first of them gets it.
//
// A Unix socket is a file. A socket file at which nothing listens is replaced; for a live one, or a file that is not a
// socket, Setup fails. Setup may take a second when another program holds the lock of the directory. The file is
// removed when the service ends.
type Listener struct {
	// Name matches sockets that another OS process has made, such as systemd or an older version of the program: see
	// package upgrade. It may be empty.
	Name string
	// Address is "host:port", or "unix:" and the path of a socket file, at most 107 bytes. Without a host, all addresses
	// are meant; port 0 means a free port that the kernel chooses: see Addr. On Linux a path that begins with @ is an
	// abstract name, without a file.
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
	// the process may have (RLIMIT_NOFILE), less 24 and a 64th; half of its memory (the least of the machine's, the
	// control group's and GOMEMLIMIT), divided by Limits.Read + Limits.High; 2^20. The result is divided by
	// Limits.Conns, and logged at info level. With the default Limits that is 256 connections in 64 MiB and 4096 in 1
	// GiB. The default does not take other services into account.
	MaxConns int
	// EvictAfter is how long a connection must have been idle before it may be evicted for a client that waits: at
	// MaxConns, or because the kernel has no descriptor or no memory for another connection. The longest idle
	// connection of this service is evicted first: on the scheduler that the client has come to, or if it has none, on
	// another. The action is closed, and the peer sees a normal close.
	//
	// 0 means 500 ms, and only for actions that know when they are idle: by their method IdleSince() (time.Duration,
	// bool), see [listener.Conn.IdleSince]. Connections of package httpd are idle before the first request and between
	// two requests, unless part of the answer is queued; a handshake of package secure is idle while its client sends
	// nothing. A positive EvictAfter applies to other actions too: they are idle while no byte goes either way, none is
	// unread and none is queued. So it has to be longer than an answer may take. Less than 0 means never.
	EvictAfter time.Duration
	// AtEnd says what happens to open connections when shutdown begins. The zero value, FinishRequest, tells their
	// actions, so that they finish the present request.
	AtEnd Ending
	// Backlog bounds the connections that wait to be accepted, for each listening socket; 0 means as many as the kernel
	// allows.
	Backlog int
	// Limits bound the memory and the time of each connection. The zero Limits has defaults.
	Limits listener.Limits
	// KeepAlive is the time of silence after which the kernel probes a TCP peer, and the time between two probes; Linux
	// gives up at the ninth. 0 means a minute, less than 0 never.
	KeepAlive time.Duration
	// Mode has the permissions of a socket file; 0 leaves them to the umask of the process. Connecting needs write
	// permission: with 0660 the owner and the group can connect.
	Mode fs.FileMode
	// Owner and Group are the owner and the group of a socket file, by name or by number; "" means the process's own.
	// Only root can give a file to another user; others can choose among the groups of the process. Mode, Owner and
	// Group are set before anyone can connect, and have no effect on an abstract name. If one of them cannot be set,
	// Setup fails.
	Owner, Group string

	sockets[*acceptor]
	limiter *engine.Limiter // made by the first Setup of each Group
}

// Setup begins to listen on one scheduler. It is a set-up function: pass it to [act.Run] or act.Group.Run, which call
// it on the scheduler's thread. The error is one sentence that names the address.
func (v *Listener) Setup(s *act.Scheduler) error {
	if err := v.setUp(s); err != nil {
		return fmt.Errorf("cannot listen on %s: %w", v.Address, err)
	}
	return nil
}

// Addr returns the address that was bound, with the port that the kernel has chosen for port 0. It is nil before the first
// Setup, and stays after the end. Any goroutine.
func (v *Listener) Addr() net.Addr { return v.bound() }

// Conns returns the number of connections, including lingering ones. It may be too high for a moment, by one for each
// scheduler that is accepting. Any goroutine.
func (v *Listener) Conns() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.limiter.Conns()
}

// Handover is for package upgrade, which passes the listening sockets to the program that replaces this one. Programs do not
// call it.
func (v *Listener) Handover() handover.Listener {
	return &listening[*acceptor]{&v.sockets, v.Name, v.Address, "tcp", "listens for streams", system.Adopt}
}

// resolve returns what an address means, on the network "tcp" or "udp".
func resolve(network, address string) (addr net.Addr, err error) {
	path, file := strings.CutPrefix(address, "unix:")
	switch {
	case address == "": // to package net that is any address and port, here it was forgotten
		return nil, errors.New("missing port in address")
	case network == "tcp" && file:
		return &net.UnixAddr{Name: path, Net: "unix"}, nil
	case file:
		return &net.UnixAddr{Name: path, Net: "unixgram"}, nil
	case network == "tcp":
		addr, err = net.ResolveTCPAddr(network, address)
	default:
		addr, err = net.ResolveUDPAddr(network, address)
	}
	if bad := (*net.AddrError)(nil); errors.As(err, &bad) {
		err = errors.New(bad.Err) // Setup names the address
	}
	return addr, err
}

// prepare gives the socket file its owner, its group and its mode: in this order, since a change of owner may take bits of
// the mode away (chown(2)).
func (v *Listener) prepare(path string) error {
	uid, err := number(v.Owner, func(name string) (string, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return u.Uid, nil
	})
	gid := -1
	if err == nil {
		gid, err = number(v.Group, func(name string) (string, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return "", err
			}
			return g.Gid, nil
		})
	}
	if err == nil && max(uid, gid) >= 0 {
		err = os.Lchown(path, uid, gid)
	}
	if err == nil && v.Mode != 0 {
		err = os.Chmod(path, v.Mode.Perm())
	}
	if err != nil {
		return fmt.Errorf("mode, owner or group of the socket file: %w", err)
	}
	return nil
}

// number returns the number of a user or group that is given by number or by name, and -1 for none.
func number(text string, lookUp func(name string) (string, error)) (int, error) {
	if text == "" {
		return -1, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		if text, err = lookUp(text); err == nil {
			n, err = strconv.ParseUint(text, 10, 31)
		}
	}
	return int(n), err
}
