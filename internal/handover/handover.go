// Package handover passes sockets from one process to another: package upgrade carries them, and services give and take
// them.
package handover

import (
	"fmt"
	"net"
	"syscall"

	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/shutdown"
)

// Sockets are the sockets of one service that come from another process, or go to one.
type Sockets struct {
	// Name is that of the service. If it is "", or the service has none, the address decides.
	Name string
	// Address is where the service was told to listen, such as "127.0.0.1:0" or "unix:/run/web". If it is "" the address of
	// the first socket counts.
	Address string
	// FDs are their descriptors, at least one.
	FDs []int
	// Lent reports that they stay open in the process they come from, such as systemd. At its end the service leaves to that
	// process the connections that are not accepted yet, and does not remove the file of a Unix socket.
	Lent bool
	// Shared is for the service that takes them: each of its schedulers has all of them, and not one for itself.
	Shared bool `json:"-"`
}

// Close closes the descriptors.
func (x *Sockets) Close() {
	for _, fd := range x.FDs {
		_ = netpoll.System{}.Close(fd)
	}
	x.FDs = nil
}

// Adopt prepares a socket that another process has made: one that listens for streams, or receives datagrams. It returns the
// address.
func Adopt(fd int) (net.Addr, error) {
	addr, _, err := netpoll.System{}.Adopt(fd)
	if err == syscall.EPROTONOSUPPORT {
		addr, _, err = netpoll.System{}.AdoptPackets(fd)
	}
	return addr, err
}

// Service is a service whose sockets are passed on: a service of package service, or one that is served by such a service.
type Service interface {
	// Handover returns nil if the service is not to listen.
	Handover() Listener
}

// Listeners returns the listeners of services, and leaves out services without any.
func Listeners(services []any) (all []Listener) {
	for _, v := range services {
		if s, ok := v.(Service); ok {
			if l := s.Handover(); l != nil {
				all = append(all, l)
			}
		}
	}
	return all
}

// Listener is the part of a service that listens.
type Listener interface {
	// Inherit takes this service's sockets out of another process's sockets, and returns the others. The service does not open
	// sockets then, but listens on these: each scheduler on one, on several of them, or, if there are fewer than schedulers, on a
	// further one that it opens. Sockets without SO_REUSEPORT, such as systemd's, are shared by all. The backlog of the service
	// has no effect, nor have mode, owner and group. The error is of a descriptor that is not such a socket. Inherit is
	// called before Setup.
	Inherit(all []*Sockets) (others []*Sockets, err error)
	// Sockets returns duplicates of the sockets that the service listens on; nil if it does not listen. The caller closes them. Any
	// goroutine.
	Sockets() (*Sockets, error)
	// Give ends the service because another process listens on its sockets. The connections that wait are left to that process,
	// and the file of a Unix socket stays. Accepted connections go on, of a service with LastOfAll as of one with FinishRequest.
	// Any goroutine.
	Give()
}

// Replaced is the shutdown request with which a program ends after another one has taken over.
type Replaced struct {
	PID   int             // of the new process
	Terms shutdown.Policy // how this program shuts down
}

// Policy returns r.Terms.
func (r Replaced) Policy() shutdown.Policy { return r.Terms }

// Replaced returns true: another process serves the same addresses. It is for httpd.Ready.
func (r Replaced) Replaced() bool { return true }

// String is for logs.
func (r Replaced) String() string { return fmt.Sprintf("replaced by process %d", r.PID) }
