package streamtest

import (
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// Sockets is the way over real sockets: network is "tcp" or "unix". The filters are the server's, and client makes of a
// socket the connection of a peer that goes with them; nil leaves it as it is.
func Sockets(network string, filters []listener.Filter, client func(net.Conn) net.Conn) Way {
	local := network == "unix"
	return Way{Local: local, Play: func(t *testing.T, x Scene) {
		var socket interface {
			Addr() net.Addr
			Conns() int
			Setup(*act.Scheduler) error
		} = &service.Listener{Address: "127.0.0.1:0", Handler: x.Handle, Limits: x.Limits, Filters: filters}
		if local {
			path := filepath.Join(servertest.ShortDir(t), "s")
			socket = &service.Listener{Address: "unix:" + path, Handler: x.Handle, Limits: x.Limits, Filters: filters}
		}
		now := &servertest.Clock{}
		now.Pass(time.Second)
		v := servertest.Start(t, act.Config{Schedulers: 1, Clock: now}, socket.Setup)
		under := servertest.Dial(t, socket.Addr())
		c := under
		if client != nil {
			c = client(under)
		}
		var others sync.WaitGroup
		x.Script(&Peer{Conn: c, T: t, Local: local, Open: socket.Conns,
			CloseWrite: c.(interface{ CloseWrite() error }).CloseWrite,
			Abort:      func() { cut(t, under) },
			On:         func(f func()) { v.On(0, func(*act.Scheduler) { f() }) },
			Pass: func(d time.Duration) {
				now.Pass(d)
				v.On(0, func(*act.Scheduler) {}) // reads the clock
			},
			Go: others.Go,
			Wait: func(until func() bool) {
				over := false
				for end := time.Now().Add(servertest.Timeout); !over; {
					require.True(t, time.Now().Before(end), "it does not happen")
					v.On(0, func(*act.Scheduler) { over = until() })
					if !over {
						time.Sleep(50 * time.Microsecond)
					}
				}
			}})
		others.Wait()
		_ = c.Close()
		_ = under.Close()
		v.Group.Shutdown(servertest.Drain)
		require.NoError(t, v.End())
	}}
}

// cut resets a connection, as far as it can be.
func cut(t *testing.T, c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		servertest.Reset(t, tcp)
		return
	}
	_ = c.Close()
}
