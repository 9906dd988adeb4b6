package proxyproto_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

const header = "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n"

// serve starts a server whose connections begin with a header.
func serve(t testing.TB, config proxyproto.Config, handler func(*listener.Conn) act.Action, further ...listener.Filter) (*servertest.Running, *service.Listener) {
	v := &service.Listener{Address: "127.0.0.1:0", Handler: handler, Filters: append([]listener.Filter{proxyproto.Server(config)}, further...)}
	return servertest.Start(t, act.Config{Schedulers: 1}, v.Setup), v
}

// drain ends the server when its connections have ended. Nothing may have failed.
func drain(r *servertest.Running) {
	r.T.Helper()
	r.Group.Shutdown(servertest.Drain)
	require.NoError(r.T, r.End())
	require.Empty(r.T, r.Logs.FilterMessage("a task failed").All())
}

// tells says where the connection comes from, what it has connected to, and who has sent the header, and then sends back what
// it receives.
func tells(c *listener.Conn) act.Action {
	fmt.Fprintf(c, "%v %v %v\n", c.RemoteAddr(), c.LocalAddr(), proxyproto.ProxyAddr(c))
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

func TestWhereAConnectionComesFrom(t *testing.T) {
	elsewhere := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	const client, real, refused = "192.0.2.7:4711 192.0.2.1:80 ME", "ME SERVER ME", ""
	for _, row := range []struct {
		name   string
		config proxyproto.Config
		sends  string
		hears  string // before the bytes after the header
		behind string
	}{
		{"a header from a trusted sender", proxyproto.Config{Trusted: loopback}, header + "hello", client, "hello"},
		{"one of version 2", proxyproto.Config{Trusted: loopback}, binaryHeader(0x21, 0x11, v4) + "hello", client, "hello"},
		{"nothing behind it", proxyproto.Config{Trusted: loopback}, header, client, ""},
		{"only the first header counts", proxyproto.Config{Trusted: loopback}, header + header, client, header},
		{"the proxy speaks for itself", proxyproto.Config{Trusted: loopback}, binaryHeader(0x20, 0x00, "") + "hello", real, "hello"},
		{"the proxy does not know", proxyproto.Config{Trusted: loopback}, "PROXY UNKNOWN\r\nhello", real, "hello"},
		{"no header from a trusted sender", proxyproto.Config{Trusted: loopback}, "GET / HTTP/1.1\r\n", refused, ""},
		{"a malformed header", proxyproto.Config{Trusted: loopback}, strings.Replace(header, "TCP4", "TCP5", 1), refused, ""},
		{"an end in the middle", proxyproto.Config{Trusted: loopback}, header[:20], refused, ""},
		{"an end without a byte", proxyproto.Config{Trusted: loopback}, "", refused, ""},
		{"a header from elsewhere is not read", proxyproto.Config{Trusted: elsewhere}, header + "hello", real, header + "hello"},
		{"no header from elsewhere", proxyproto.Config{Trusted: elsewhere}, "hello", real, "hello"},
		{"others are refused", proxyproto.Config{Trusted: elsewhere, RefuseOthers: true}, header + "hello", refused, ""},
		{"Unix alone is trusted", proxyproto.Config{Unix: true}, header + "hello", real, header + "hello"},
		{"a network of IPv4-mapped addresses", proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("::ffff:127.0.0.0/104")}},
			header + "hello", client, "hello"},
		{"an IPv4-mapped address", proxyproto.Config{Trusted: []netip.Prefix{netip.PrefixFrom(netip.MustParseAddr("::ffff:127.0.0.1"), 128)}},
			header + "hello", client, "hello"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, v := serve(t, row.config, tells)
			for _, piece := range []int{1, 7, len(row.sends) + 1} {
				me, got, err := visit(v.Addr(), row.sends, piece)
				if row.hears == refused {
					require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ENOTCONN), "%v", err)
					require.Empty(t, got)
				} else {
					require.NoError(t, err)
					require.Equal(t, strings.NewReplacer("ME", me, "SERVER", v.Addr().String()).Replace(row.hears)+"\n"+row.behind, got)
				}
			}
			refusals := 0
			if row.hears == refused {
				refusals = 3
			}
			r.On(0, func(s *act.Scheduler) {
				require.EqualValues(t, refusals, rowOf(s).Refused)
				require.Zero(t, rowOf(s).Failed)
			})
			drain(r)
		})
	}
}

// visit sends what it is given, in pieces, ends that, and returns its own address and what it hears.
func visit(at net.Addr, sends string, piece int) (me, hears string, err error) {
	c, err := net.DialTimeout("tcp", at.String(), servertest.Timeout)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(servertest.Timeout)); err != nil {
		return "", "", err
	}
	for rest := sends; rest != ""; rest = rest[min(piece, len(rest)):] {
		if _, err := io.WriteString(c, rest[:min(piece, len(rest))]); err != nil {
			return "", "", err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "", "", err
	}
	got, err := io.ReadAll(c)
	return c.LocalAddr().String(), string(got), err
}

// rowOf returns what the only service of s has counted.
func rowOf(s *act.Scheduler) (found facts.Service) {
	s.Internals().EachTask(1, func(x *act.Task) bool {
		if v, ok := x.Action().(facts.Lister); ok {
			v.List(true, func(row any) bool { found = *row.(*facts.Service); return true })
		}
		return true
	})
	return found
}

func TestAConfigThatTrustsNobodyPanics(t *testing.T) {
	for _, c := range []proxyproto.Config{{}, {Trusted: []netip.Prefix{{}}}, {Unix: true, Trusted: []netip.Prefix{{}}},
		{Trusted: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/95")}}} {
		require.Panics(t, func() { proxyproto.Server(c) })
	}
	require.NotPanics(t, func() { proxyproto.Server(proxyproto.Config{Unix: true}) })
}

// Of a Unix socket the client has no address but that of the header.
func TestAHeaderOverAUnixSocket(t *testing.T) {
	v := &service.Listener{Address: "unix:" + filepath.Join(servertest.ShortDir(t), "s"), Handler: tells,
		Filters: []listener.Filter{proxyproto.Server(proxyproto.Config{Unix: true, RefuseOthers: true})}}
	r := servertest.Start(t, act.Config{Schedulers: 1}, v.Setup)
	c := servertest.Dial(t, v.Addr())
	servertest.Send(t, c, header)
	servertest.Expect(t, c, "192.0.2.7:4711 192.0.2.1:80 ")
	_ = c.Close()
	drain(r)
}

// What a handler of HTTP sees.
func TestRequestsBehindAHeader(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		h, ok := proxyproto.Of(r.Conn())
		fmt.Fprintf(w, "%v by version %d %v", r.RemoteAddr(), h.Version, ok)
		return nil
	}}
	r, v := serve(t, proxyproto.Config{Trusted: loopback}, web.Serve)
	c := servertest.Dial(t, v.Addr())
	servertest.Send(t, c, binaryHeader(0x21, 0x11, v4+"\x02\x00\x0bexample.com")+"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "192.0.2.7:4711 by version 2 true", string(text))
	_ = c.Close()
	drain(r)
}

// What package inspect shows, and what is logged, names the client; what is waited for names both.
func TestWhatIsSaidOfAConnectionNamesItsClient(t *testing.T) {
	l := servertest.New(t, act.Config{})
	fails := errors.New("for no reason")
	v := &service.Listener{Address: "127.0.0.1:0", Filters: []listener.Filter{proxyproto.Server(proxyproto.Config{Trusted: loopback})},
		Handler: func(c *listener.Conn) act.Action {
			return act.Func(func(t *act.Task) act.Directive {
				if _, err := c.Peek(1); err != nil {
					return c.Next(t, err)
				}
				return t.Fail(fails)
			})
		}}
	require.NoError(t, v.Setup(l.S))
	accepts := "connections to " + v.Addr().String()
	c := servertest.Dial(t, v.Addr())
	proxy := c.LocalAddr().String()
	l.UntilSaid(accepts, "a filter of the connection: PROXY header", "input from "+proxy)
	servertest.Send(t, c, header)
	l.UntilSaid(accepts, "input from 192.0.2.7:4711 by way of "+proxy)
	l.S.Internals().EachTask(1, func(x *act.Task) bool {
		if x.Demon() {
			return true
		}
		var said act.Description
		x.Action().(act.Describer).Describe(&said)
		seen := said.Internals()
		require.Equal(t, "192.0.2.7:4711", seen.Peer.String())
		require.GreaterOrEqual(t, seen.Still, time.Duration(0), "it is known below")
		require.Greater(t, l.S.Internals().Descriptor(x), 2)
		return true
	})
	servertest.Send(t, c, "fail")
	l.Until("it has failed", func() bool { return l.Logs.FilterMessage("a task failed").Len() == 1 })
	require.Equal(t, "192.0.2.7:4711", l.Logs.FilterMessage("a task failed").All()[0].ContextMap()["peer"])
}

// Nothing of the connection is lost: the kernel sends files, and reports the end.
func TestAHeaderLeavesSendFileAndEnded(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("of a file"), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	servertest.Send(t, peer, header+"and more")
	over := false
	filter := c.Internals().Filtered(0, proxyproto.Server(proxyproto.Config{Trusted: loopback}))
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		d := filter.Act(t)
		over = d == act.Done
		return d
	}))
	l.Until("the header is read", func() bool { return over })
	require.Equal(t, "192.0.2.7:4711", c.RemoteAddr().String())
	l.Turn(func(task *act.Task) {
		in, err := c.Peek(8)
		require.NoError(t, err)
		require.Equal(t, "and more", string(in))
		c.Discard(8)
		_, err = c.SendFile(f, 0, 9)
		require.NoError(t, err)
		half, err := c.Ended(task)
		require.False(t, half)
		require.NoError(t, err)
		_, idle := c.IdleSince()
		require.True(t, idle)
	})
	require.NotZero(t, l.OS.Count("sendfile"), "the system's own way")
	servertest.Expect(t, peer, "of a file")
	require.NoError(t, peer.(*net.TCPConn).CloseWrite())
	l.Until("its end is known", func() (half bool) {
		l.Turn(func(task *act.Task) { half, _ = c.Ended(task) })
		return half
	})
	c.Abort()
	require.Equal(t, "192.0.2.7:4711", c.RemoteAddr().String(), "for a log")
	_, ok := proxyproto.Of(c)
	require.False(t, ok)
}
