package service

import (
	"net"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Unix is a service on a stream socket of the file system. All schedulers share one listening socket. A socket file at
// which nothing listens is replaced; a live one, or a file that is not a socket, is not touched. The file is removed
// when the service ends. Orders, and the fields, have the same effects as with [TCP].
type Unix struct {
	// Path is where the socket file is made; it must fit into 107 bytes. On Linux one that begins with @ is
	// an abstract name, without a file.
	Path string
	// The following are those of TCP; the Backlog is for all schedulers together.
	Handler       func(*listener.Conn) act.Action
	Filters       []listener.Filter
	FilterTimeout time.Duration
	MaxConns      int
	ReclaimAfter  time.Duration
	Backlog       int
	Limits        listener.Limits

	server
}

// Setup listens. It is a set-up function: give it to act.Run or Group.Run. The error is one sentence
// that names the path. It may take a second when another program holds the lock of the directory.
func (v *Unix) Setup(s *act.Scheduler) error {
	return v.setUp(s, "unix:"+v.Path, config{
		listen:   monitor.ListenOptions{Backlog: v.Backlog},
		resolve:  func() (net.Addr, error) { return &net.UnixAddr{Name: v.Path, Net: "unix"}, nil },
		maxConns: v.MaxConns, limits: v.Limits, handler: v.Handler,
		filters: v.Filters, filterTimeout: v.FilterTimeout, reclaimAfter: v.ReclaimAfter,
	})
}
