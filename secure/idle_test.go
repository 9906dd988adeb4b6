package secure_test

import (
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// idle is how many idle connections share what is measured.
const idle = 1000

// An idle connection takes what its tls.Conn takes, what a connection without TLS takes, and little else. The clients keep
// their sockets only.
func TestMeasureAnIdleConnection(t *testing.T) {
	tier.Measure(t, "memory")
	server, client := identities(t)
	client.DynamicRecordSizingDisabled = true
	for name, size := range map[string]int{"small records": 64, "a record of 16 KiB": 16 << 10} {
		t.Run(name, func(t *testing.T) {
			message := noise(size)
			exchange := func(c net.Conn) {
				_, err := c.Write(message)
				require.NoError(t, err)
				_, err = io.ReadFull(c, make([]byte, size))
				require.NoError(t, err)
			}
			price.AtMost(t, "bytes beside a tls.Conn alone and a connection without TLS", 512, func() float64 {
				alone := liveAlone(t, server, func(raw net.Conn) { exchange(tls.Client(raw, client)) }, size)
				plain := liveServed(t, nil, exchange)
				whole := liveServed(t, []listener.Filter{secure.Server(server, nil)},
					func(raw net.Conn) { exchange(tls.Client(raw, client)) })
				return float64(whole - plain - alone)
			})
		})
	}
}

// liveServed returns the live heap for each connection of a service, with its client's socket, after use.
func liveServed(t *testing.T, filters []listener.Filter, use func(net.Conn)) int {
	s := serve(t, &service.Listener{Handler: echo.Echo, Filters: filters})
	const first = 10 // fill what all share
	conns := make([]net.Conn, 0, first+idle)
	before := 0
	for i := range cap(conns) {
		if i == first {
			before = live()
		}
		c := servertest.Dial(t, s.Addr())
		conns = append(conns, c)
		use(c)
	}
	grown := live() - before
	for _, c := range conns {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	s.drain()
	return grown / idle
}

// liveAlone returns the live heap for each tls.Conn of a server that has answered a message, over sockets that were there
// before.
func liveAlone(t *testing.T, config *tls.Config, use func(net.Conn), size int) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, far := make([]net.Conn, idle), make([]net.Conn, idle)
	for i := range near {
		near[i] = servertest.Dial(t, l.Addr())
		far[i], err = l.Accept()
		require.NoError(t, err)
	}
	servers := make([]*tls.Conn, idle)
	before := live()
	for i := range servers {
		servers[i] = tls.Server(far[i], config)
		ended := make(chan error, 1)
		go func() {
			got := make([]byte, size)
			_, err := io.ReadFull(servers[i], got)
			if err == nil {
				_, err = servers[i].Write(got)
			}
			ended <- err
		}()
		use(near[i])
		require.NoError(t, <-ended)
	}
	grown := live() - before
	runtime.KeepAlive(servers)
	for i := range near {
		_, _ = near[i].Close(), far[i].Close()
	}
	return grown / idle
}

// live returns the bytes of the heap that are in use.
func live() int {
	for range 3 { // pools keep things for two collections
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
