package service_test

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/handover"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/service"
)

// sizes are the sizes of the buffers of a socket, for receiving and for sending.
type sizes struct{ receiving, sending int }

// options is an OS that notes the options of sockets that are set.
type options struct {
	servertest.OS
	mu        sync.Mutex
	keepAlive []time.Duration
	buffers   []sizes
	backlogs  []int
	prompt    atomic.Int32 // sockets whose small segments go out at once
}

func (o *options) SetNoDelay(fd int, on bool) error {
	if on {
		o.prompt.Add(1)
	}
	return o.System.SetNoDelay(fd, on)
}

func (o *options) ListenTCP(at netip.AddrPort, backlog int) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backlogs = append(o.backlogs, backlog)
	return o.System.ListenTCP(at, backlog)
}

func (o *options) ListenUnix(path string, backlog int, prepare func(string) error) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backlogs = append(o.backlogs, backlog)
	return o.System.ListenUnix(path, backlog, prepare)
}

func (o *options) SetKeepAlive(fd int, idle time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keepAlive = append(o.keepAlive, idle)
	return o.System.SetKeepAlive(fd, idle)
}

func (o *options) SetBuffers(fd, receiving, sending int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffers = append(o.buffers, sizes{receiving, sending})
	return o.System.SetBuffers(fd, receiving, sending)
}

// seen returns what was noted, and forgets it.
func (o *options) seen() (keepAlive []time.Duration, buffers []sizes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keepAlive, buffers = o.keepAlive, o.buffers
	o.keepAlive, o.buffers = nil, nil
	return keepAlive, buffers
}

// Keep-alive is on for accepted and for dialled connections, unless it is switched off. Accepted TCP connections
// inherit the options of the listening socket. Connections of a Unix socket have to be given theirs, and so have
// connections of a socket that package net has made, which may use Multipath TCP.
func TestOptionsOfSockets(t *testing.T) {
	l, err := net.Listen("tcp", loopback)
	require.NoError(t, err)
	defer l.Close()
	foreign := &service.Listener{Name: "foreign", Handler: echo.Echo, Limits: listener.Limits{ReceiveBuffer: 30000, SendBuffer: 40000}}
	_, err = foreign.Handover().Inherit([]*handover.Sockets{{Name: "foreign", FDs: []int{socketOf(t, l.(syscall.Conn))}}})
	require.NoError(t, err)
	limits := listener.Limits{ReceiveBuffer: 30000, SendBuffer: 40000}
	given := sizes{30000, 40000}
	unix := &service.Listener{Address: "unix:" + servertest.ShortDir(t) + "/s", Handler: echo.Echo, Limits: limits, Backlog: 7}
	sized := &service.Listener{Address: loopback, Handler: echo.Echo, Limits: limits, Backlog: 7}
	for name, test := range map[string]struct {
		service                  *service.Listener
		connect                  listener.Connect
		listening, dialled       []time.Duration
		accepted                 []time.Duration
		buffers, atEach, dialing []sizes
	}{
		"the defaults": {service: &service.Listener{Address: loopback, Handler: echo.Echo},
			listening: []time.Duration{time.Minute}, dialled: []time.Duration{time.Minute}},
		"times": {service: &service.Listener{Address: loopback, Handler: echo.Echo, KeepAlive: time.Hour},
			connect:   listener.Connect{KeepAlive: time.Second},
			listening: []time.Duration{time.Hour}, dialled: []time.Duration{time.Second}},
		"never": {service: &service.Listener{Address: loopback, Handler: echo.Echo, KeepAlive: -1},
			connect:   listener.Connect{KeepAlive: -time.Second},
			listening: []time.Duration{0}, dialled: []time.Duration{0}},
		"buffers": {service: sized, connect: listener.Connect{Limits: limits},
			listening: []time.Duration{time.Minute}, dialled: []time.Duration{time.Minute},
			buffers: []sizes{given}, dialing: []sizes{given}},
		"buffers of Unix sockets": {service: unix, connect: listener.Connect{Limits: limits},
			atEach: []sizes{given}, dialing: []sizes{given}},
		"a socket of package net": {service: foreign, dialled: []time.Duration{time.Minute},
			accepted: []time.Duration{time.Minute}, atEach: []sizes{given}},
	} {
		t.Run(name, func(t *testing.T) {
			os := &options{}
			w := begin(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
				engine.Below.Put(s, os)
				return nil
			}, test.service.Setup)
			keepAlive, buffers := os.seen()
			require.Equal(t, test.listening, keepAlive)
			require.Equal(t, test.buffers, buffers)
			if test.dialing != nil {
				require.Equal(t, []int{7}, os.backlogs)
			}

			c := servertest.Dial(t, test.service.Addr())
			servertest.Echo(t, c, "hello")
			keepAlive, buffers = os.seen()
			if netpoll.InheritsKeepAlive || test.service.Addr().Network() == "unix" {
				require.Equal(t, test.accepted, keepAlive, "the others are inherited")
				require.Equal(t, test.service.Addr().Network() == "tcp", os.prompt.Load() == 1)
			} else {
				require.Equal(t, append(test.listening, test.accepted...), keepAlive)
			}
			require.Equal(t, test.atEach, buffers)

			os = &options{}
			other := servertest.Start(t, act.Config{Schedulers: 1}, func(s *act.Scheduler) error {
				engine.Below.Put(s, os)
				dial := test.connect
				dial.Address = test.service.Addr().String()
				if test.service.Addr().Network() == "unix" {
					dial.Address = "unix:" + dial.Address
				}
				s.Spawn(act.Seq(&dial, act.Func(func(*act.Task) act.Directive {
					dial.Conn().Abort()
					return act.Done
				})))
				return nil
			})
			require.NoError(t, other.End())
			keepAlive, buffers = os.seen()
			require.Equal(t, test.dialled, keepAlive)
			require.Equal(t, test.dialing, buffers)
			require.NoError(t, c.Close())
			require.NoError(t, w.order(servertest.Drain))
		})
	}
}
