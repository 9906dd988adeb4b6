package service

import (
	"fmt"
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Unix is a service on a stream socket of the file system. All schedulers share one listening socket. A
// socket file that nobody listens at is replaced; a live one, or a file that is no socket, is not
// touched. The file is removed when the service ends. Orders and the rest are as with TCP.
type Unix struct {
	// Path is where the socket file is made; it must fit into 107 bytes. On Linux one that begins with @ is
	// an abstract name, without a file.
	Path string
	// Handler, MaxConns, Backlog and Limits are those of TCP; the Backlog is for all schedulers together.
	Handler  func(*listener.Conn) act.Action
	MaxConns int
	Backlog  int
	Limits   listener.Limits

	fd int
	socket
}

// Setup listens. It is a set-up function: give it to act.Run or Group.Run. The error is one sentence
// that names the path. It may take a second when another program holds the lock of the directory.
func (v *Unix) Setup(s *act.Scheduler) error {
	if err := v.open(s, opening{"unix", v.MaxConns, v.Limits, v.Handler, v.listen}); err != nil {
		return fmt.Errorf("cannot listen on unix:%s: %w", v.Path, err)
	}
	return nil
}

func (v *Unix) listen(e *monitor.IO, bound net.Addr) (*monitor.Port, error) {
	if bound == nil {
		fd, err := e.OS().ListenUnix(v.Path, netpoll.ListenOptions{Backlog: v.Backlog})
		if err != nil {
			return nil, err
		}
		v.fd = fd
		v.last = func() {
			_ = e.OS().Close(fd)
			_ = e.OS().Unlink(v.Path) // whoever comes next replaces what cannot be removed
		}
	}
	port, err := e.Port(v.fd, true)
	if err != nil && bound == nil {
		v.last()
		v.last = nil
	}
	return port, err
}
