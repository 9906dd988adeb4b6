package nethttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// conn is a connection of a Server, for ConnContext and ConnState.
type conn struct {
	addresses
	of  *listener.Conn
	ctx context.Context // of its requests
}

// conns are the connections of one scheduler, if there is a ConnContext or a ConnState.
var conns = act.NewLocal(func(*act.Scheduler) map[*listener.Conn]*conn { return map[*listener.Conn]*conn{} })

// state is an httpd.Server.OnState.
func (x *call) state(of *listener.Conn, s httpd.ConnState) {
	all := conns.Get(of.Scheduler())
	c := all[of]
	if s == httpd.StateNew {
		c = &conn{of: of, addresses: addressesOf(of, of.RemoteAddr()), ctx: x.base}
		if x.ConnContext != nil {
			if c.ctx = x.ConnContext(x.base, c.outside()); c.ctx == nil {
				panic("nethttp: ConnContext has returned nil")
			}
		}
	}
	if x.ConnState != nil {
		x.ConnState(c.outside(), http.ConnState(s))
	}
	switch s {
	case httpd.StateNew:
		all[of] = c
	case httpd.StateHijacked, httpd.StateClosed:
		delete(all, of)
	}
}

// outside returns the net.Conn that the program gets for c, the same each time.
func (c *conn) outside() net.Conn {
	if c.tls != nil {
		return encrypted{c}
	}
	return plain{c}
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.peer }

// Close closes the connection soon, on its own thread.
func (c *conn) Close() error {
	return c.of.Scheduler().Post(func(*act.Scheduler) { _ = c.of.Close() })
}

var errNotYours = fmt.Errorf("nethttp: the server does this: %w", errors.ErrUnsupported)

func (*conn) Read([]byte) (int, error)         { return 0, errNotYours }
func (*conn) Write([]byte) (int, error)        { return 0, errNotYours }
func (*conn) SetDeadline(time.Time) error      { return errNotYours }
func (*conn) SetReadDeadline(time.Time) error  { return errNotYours }
func (*conn) SetWriteDeadline(time.Time) error { return errNotYours }

// encrypted is a conn with TLS.
type encrypted struct{ *conn }

func (c encrypted) ConnectionState() tls.ConnectionState { return *c.tls }

// plain is a conn without TLS.
type plain struct{ *conn }

func (c plain) SyscallConn() (syscall.RawConn, error) { return raw(c), nil }

// raw is the descriptor of a conn, which is safe to use on the scheduler's thread.
type raw struct{ *conn }

func (r raw) Control(f func(fd uintptr)) error {
	if s, ok := listener.As[interface{ Descriptor() int }](r.of); ok && r.of.Scheduler().Internals().Here() && s.Descriptor() >= 0 {
		f(uintptr(s.Descriptor()))
		return nil
	}
	return net.ErrClosed
}

func (raw) Read(func(fd uintptr) bool) error  { return errNotYours }
func (raw) Write(func(fd uintptr) bool) error { return errNotYours }
