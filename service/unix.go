package service

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Unix is a service on a stream socket in the file system. All schedulers share one listening socket. A socket file at
// which nothing listens is replaced; a live one, or a file that is not a socket, is not touched, and Setup fails. The
// file is removed when the service ends. Shutdown, and the fields, have the same effects as for [TCP].
type Unix struct {
	// Name matches inherited sockets, as in [TCP].
	Name string
	// Path is the path of the socket file, at most 107 bytes. On Linux a path that begins with @ is an abstract name,
	// without a file.
	Path string
	// Mode has the permissions of the socket file; 0 leaves them to the umask of the process. Connecting needs write
	// permission: with 0660 the owner and the group can connect.
	Mode fs.FileMode
	// Owner and Group are the owner and the group of the socket file, by name or by number; "" means the process's own.
	// Only root can give a file to another user; others can choose among the groups of the process. Mode, Owner and
	// Group are set before anyone can connect, and have no effect on an abstract name. If one of them cannot be set,
	// Setup fails.
	Owner, Group string
	// The following fields are as in TCP; Backlog is for all schedulers together.
	Handler       func(*listener.Conn) act.Action
	Filters       []listener.Filter
	FilterTimeout time.Duration
	MaxConns      int
	ReclaimAfter  time.Duration
	AtEnd         Ending
	Backlog       int
	Limits        listener.Limits

	server
}

// Setup begins to listen on one scheduler. It is a set-up function: pass it to [act.Run] or act.Group.Run. The error is
// one sentence that names the path. It may take a second when another program holds the lock of the directory.
func (v *Unix) Setup(s *act.Scheduler) error {
	return v.setUp(s, unixPrefix+v.Path, config{
		listen:   monitor.ListenOptions{Backlog: v.Backlog, Prepare: v.prepare},
		resolve:  v.resolve,
		maxConns: v.MaxConns, limits: v.Limits, handler: v.Handler,
		filters: v.Filters, filterTimeout: v.FilterTimeout, reclaimAfter: v.ReclaimAfter, atEnd: v.AtEnd,
	})
}

// Handover is for package upgrade, as [TCP.Handover] is.
func (v *Unix) Handover() handover.Listener {
	return listening{&v.server, v.Name, unixPrefix + v.Path, v.resolve}
}

const unixPrefix = "unix:"

func (v *Unix) resolve() (net.Addr, error) { return &net.UnixAddr{Name: v.Path, Net: "unix"}, nil }

// prepare gives the socket file its owner, its group and its mode: in this order, since a change of owner may take bits of
// the mode away (chown(2)).
func (v *Unix) prepare(path string) error {
	uid, gid := -1, -1 // unchanged
	var err error
	if v.Owner != "" {
		uid, err = number(v.Owner, func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.Uid, nil
		})
	}
	if err == nil && v.Group != "" {
		gid, err = number(v.Group, func(name string) (string, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return "", err
			}
			return g.Gid, nil
		})
	}
	if err == nil && (uid >= 0 || gid >= 0) {
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

// number returns the number of a user or group that is given by number or by name.
func number(text string, lookUp func(name string) (string, error)) (int, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return int(n), nil
	}
	id, err := lookUp(text)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(id, 10, 31)
	return int(n), err
}
