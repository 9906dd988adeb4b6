package libraries

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/service"
)

// web is a server of HTTP, and a client of it.
type web struct {
	*testing.T
	url    string
	client *http.Client
	drain  func() // ends the server in order
}

// A kind of server runs a handler. Calls of its client have servertest.Timeout.
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

// adapted serves h on reactors.
func adapted(t *testing.T, h http.Handler) *web {
	site := &httpd.Server{Handler: (&nethttp.Adapter{Handler: h}).Serve}
	s := &server{socket: &service.TCP{Address: "127.0.0.1:0", Handler: site.Serve}}
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

// each runs a test for every kind of server, with a new handler.
func each(t *testing.T, handler func() http.Handler, test func(*web)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			v := k.serve(t, handler())
			test(v)
			v.drain()
		})
	}
}

// ask sends a request. fields are names, each followed by its value.
func (v *web) ask(method, path string, body io.Reader, fields ...string) *http.Response {
	v.Helper()
	a, err := v.try(method, path, body, fields...)
	require.NoError(v, err)
	return a
}

func (v *web) try(method, path string, body io.Reader, fields ...string) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(v.Context(), servertest.Timeout)
	v.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, v.url+path, body)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	a, err := v.client.Do(r)
	if err == nil {
		v.Cleanup(func() { _ = a.Body.Close() })
	}
	return a, err
}

// get returns the body of an answer with status 200.
func (v *web) get(path string, fields ...string) string {
	v.Helper()
	a := v.ask("GET", path, nil, fields...)
	require.Equal(v, 200, a.StatusCode)
	return v.whole(a)
}

// whole returns the rest of the body.
func (v *web) whole(a *http.Response) string {
	v.Helper()
	var b strings.Builder
	_, err := io.Copy(&b, a.Body)
	require.NoError(v, err)
	require.NoError(v, a.Body.Close())
	return b.String()
}
