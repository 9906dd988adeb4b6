package libraries

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
	"go.uber.org/goleak"
	"golang.org/x/net/nettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server calls a function with a blocking connection to each client.
type server struct {
	*servertest.Running
	socket *service.Listener
}

func start(t *testing.T, f func(net.Conn) error) *server {
	s := &server{socket: &service.Listener{Address: "127.0.0.1:0", Handler: func(c *listener.Conn) act.Action {
		return &listener.Bridge{Conn: c, F: f}
	}}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 2}, s.socket.Setup)
	return s
}

func (s *server) address() string { return s.socket.Addr().String() }

// drain requires that all tasks end and none has failed.
func (s *server) drain() {
	s.T.Helper()
	s.Group.Shutdown(servertest.Drain)
	require.NoError(s.T, s.End())
	require.Empty(s.T, s.Logs.FilterMessage("a task failed").All())
}

// The tests that the Go project has for each net.Conn, with a Bridge at one end.
func TestABridgeIsANetConn(t *testing.T) {
	given := make(chan net.Conn)
	ended := make(chan struct{})
	s := start(t, func(c net.Conn) error {
		given <- c
		<-ended
		return nil
	})
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c2, err = net.Dial("tcp", s.address())
		if err != nil {
			return nil, nil, nil, err
		}
		c1 = <-given
		return c1, c2, func() {
			_, _ = c1.Close(), c2.Close()
			ended <- struct{}{}
		}, nil
	})
	s.drain()
}

// web is a server of HTTP, and a client of it.
type web struct {
	*testing.T
	url    string
	client *http.Client
	drain  func() // ends the server in order
}

// A kind of server runs a handler.
type kind struct {
	name  string
	serve func(*testing.T, http.Handler) *web
}

// kinds begin with net/http's own server: a test that fails there asks for the wrong thing.
var kinds = []kind{
	{"net/http", func(t *testing.T, h http.Handler) *web {
		servertest.CheckDescriptors(t)
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return visitor(t, s.URL, s.Close)
	}},
	{"Daimon", adapted},
}

// adapted serves h on schedulers.
func adapted(t *testing.T, h http.Handler) *web {
	site := &httpd.Server{Handler: (&nethttp.Adapter{Handler: h}).Serve}
	s := &server{socket: &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 2}, s.socket.Setup)
	return visitor(t, "http://"+s.address(), s.drain)
}

func visitor(t *testing.T, url string, drain func()) *web {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	v := &web{T: t, url: url, client: &http.Client{Transport: transport}}
	v.drain = func() {
		transport.CloseIdleConnections()
		drain()
	}
	return v
}

// All of h2spec, which has the rules of RFC 7540 and 7541.
func TestH2spec(t *testing.T) {
	site := &httpd.Server{Handler: httpd.WithBody(0, func(w *httpd.Response, _ *httpd.Request, _ []byte) act.Action {
		_, _ = w.WriteString("Hello, World!")
		return nil
	})}
	s := &server{socket: &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 1}, s.socket.Setup)
	_, number, err := net.SplitHostPort(s.address())
	require.NoError(t, err)
	port, err := strconv.Atoi(number)
	require.NoError(t, err)
	c := &config.Config{Host: "127.0.0.1", Port: port, Path: "/", Timeout: servertest.Timeout, MaxHeaderLen: 4000, Strict: true}
	var faults []string
	passed := 0
	for _, all := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		all.Test(c)
		passed += all.PassedCount
		for _, failed := range failures(all) {
			faults = append(faults, failed.Parent.Section+" "+failed.Desc)
		}
	}
	// The tool does not take an answer of HTTP/1, and the end of the connection, for an end.
	require.Equal(t, []string{"3.5 Sends invalid connection preface"}, faults)
	require.Equal(t, 145, passed)
	s.drain()
}

// failures returns the tests of a group that have failed.
func failures(g *spec.TestGroup) (all []*spec.TestCase) {
	for _, c := range append(g.Tests, g.StrictTests...) {
		if c.Result != nil && c.Result.Failed {
			all = append(all, c)
		}
	}
	for _, sub := range g.Groups {
		all = append(all, failures(sub)...)
	}
	return all
}
