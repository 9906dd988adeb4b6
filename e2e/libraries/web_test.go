package libraries

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

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
