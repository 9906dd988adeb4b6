package admission_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/admission"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
)

func TestMain(m *testing.M) {
	servertest.StartRuntimePoller()
	goleak.VerifyTestMain(m)
}

// fromAnywhere is a filter that reads PROXY headers.
var fromAnywhere = proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}})

// greets says a word, and then sends back what it receives.
func greets(c *listener.Conn) act.Action {
	fmt.Fprint(c, "welcome")
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err == nil {
			var n int
			n, err = c.Write(in)
			c.Discard(n)
		}
		return c.Next(t, err)
	})
}

// visit connects for a client, and returns a connection that has been greeted.
func visit(at net.Addr, client string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", at.String(), servertest.Timeout)
	if err != nil {
		return nil, err
	}
	from := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client))
	header := proxyproto.Header{Version: 2, Source: from, Destination: from}
	if _, err = c.Write(header.Append(nil)); err == nil {
		_ = c.SetDeadline(time.Now().Add(servertest.Timeout))
		_, err = io.ReadFull(c, make([]byte, len("welcome")))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// rowsOf adds up what the only service of a group has counted.
func rowsOf(r *servertest.Running) (all hook.Service) {
	for i := range r.Group.Schedulers() {
		r.On(i, func(s *act.Scheduler) {
			hook.EachTask(s, 1, func(x hook.Task) bool {
				if v, ok := x.Action.(hook.Lister); ok {
					v.List(true, func(row any) bool {
						v := row.(*hook.Service)
						all.Accepted, all.Refused = all.Accepted+v.Accepted, all.Refused+v.Refused
						all.TooMany, all.TooFast, all.Failed = all.TooMany+v.TooMany, all.TooFast+v.TooFast, all.Failed+v.Failed
						return true
					})
				}
				return true
			})
		})
	}
	return all
}

func refused(t *testing.T, err error) {
	t.Helper()
	require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "%v", err)
}

func TestASourceWithTooManyConnectionsIsRefused(t *testing.T) {
	limits := &admission.Limiter{Conns: 3}
	v := &service.TCP{Address: "127.0.0.1:0", Handler: greets, Filters: []listener.Filter{fromAnywhere, limits.Filter}}
	r := servertest.Start(t, act.Config{Schedulers: 3}, v.Setup)
	for _, clients := range [][]string{
		{"192.0.2.7:1", "[::ffff:192.0.2.7]:2", "192.0.2.7:3", "192.0.2.7:4"},
		{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:0:0:3]:1", "[2001:db8::4]:1"},
	} {
		var open []net.Conn
		for _, client := range clients[:3] {
			c, err := visit(v.Addr(), client)
			require.NoError(t, err)
			open = append(open, c)
		}
		_, err := visit(v.Addr(), clients[3])
		refused(t, err)
		for _, other := range []string{"192.0.2.8:1", "[2001:db8:0:1::1]:1"} {
			c, err := visit(v.Addr(), other)
			require.NoError(t, err)
			_ = c.Close()
		}
		servertest.Reset(t, open[0])
		_ = open[1].Close()
		for range 2 { // when the server has noticed
			require.Eventually(t, func() bool {
				c, err := visit(v.Addr(), clients[3])
				if err == nil {
					open = append(open, c)
				}
				return err == nil
			}, servertest.Timeout, time.Millisecond)
		}
		for _, c := range open {
			_ = c.Close()
		}
	}
	all := rowsOf(r)
	require.GreaterOrEqual(t, all.TooMany, uint64(2))
	require.Equal(t, all.TooMany, all.Refused)
	require.Zero(t, all.TooFast)
	require.Zero(t, all.Failed)
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}

func TestASourceThatComesTooFastIsRefused(t *testing.T) {
	limits := &admission.Limiter{Rate: 1, Burst: 5}
	v := &service.TCP{Address: "127.0.0.1:0", Handler: greets, Filters: []listener.Filter{limits.Filter}}
	clock := &still{}
	r := servertest.Start(t, act.Config{Schedulers: 2, Clock: clock}, v.Setup)
	for range 5 {
		servertest.Expect(t, servertest.Dial(t, v.Addr()), "welcome")
	}
	c, err := net.Dial("tcp", v.Addr().String())
	if err == nil { // otherwise it was reset at once
		_, err = c.Read(make([]byte, 1))
		_ = c.Close()
	}
	refused(t, err)
	all := rowsOf(r)
	require.EqualValues(t, 1, all.TooFast)
	require.EqualValues(t, 1, all.Refused)
	require.Zero(t, all.TooMany)
	r.Group.Shutdown(servertest.Cut)
	_ = r.End()
}

// still is a clock that stands still, so that a slow machine gives nobody more.
type still struct{}

func (*still) Monotonic() time.Duration { return time.Hour }
func (*still) Wall() time.Time          { return time.Unix(0, 0) }

// A Unix socket has no source, and a zero Limiter no limits.
func TestConnectionsWithoutALimit(t *testing.T) {
	for _, v := range []interface {
		Setup(*act.Scheduler) error
		Addr() net.Addr
	}{
		&service.Unix{Path: servertest.ShortDir(t) + "/s", Handler: greets, Filters: []listener.Filter{(&admission.Limiter{Conns: 1, Rate: 1}).Filter}},
		&service.TCP{Address: "127.0.0.1:0", Handler: greets, Filters: []listener.Filter{(&admission.Limiter{}).Filter}},
	} {
		r := servertest.Start(t, act.Config{Schedulers: 1}, v.Setup)
		for range 5 {
			c := servertest.Dial(t, v.Addr())
			servertest.Expect(t, c, "welcome")
			defer c.Close()
		}
		r.Group.Shutdown(servertest.Cut)
		_ = r.End()
	}
}

// Nothing of the connection is lost: the system sends files, and the end is known.
func TestALimitLeavesSendFileAndEnded(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	path := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(path, []byte("of a file"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	l.Turn(func(task *act.Task) {
		require.Nil(t, (&admission.Limiter{Conns: 1}).Filter(c))
		_, err := c.SendFile(f, 0, 9)
		require.NoError(t, err)
	})
	require.NotZero(t, l.OS.Count("sendfile"), "the system's own way")
	servertest.Expect(t, peer, "of a file")
	require.NoError(t, peer.(*net.TCPConn).CloseWrite())
	l.Until("its end is known", func() (half bool) {
		l.Turn(func(task *act.Task) { half, _ = c.Ended(task) })
		return half
	})
	c.Abort()
}
