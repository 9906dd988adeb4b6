package httpd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// gate is an action that waits for what its name says.
type gate string

func (gate) Act(t *act.Task) act.Directive { t.Waker(); return act.Wait }

func (g gate) Describe(d *act.Description) { d.WaitsFor(string(g)) }

// A connection says what it waits for, and how long at most.
func TestWaitsOfAConnection(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		switch string(r.Path()) {
		case "/gate":
			return gate("a gate")
		case "/body":
			return httpd.WithBody(0, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil })(w, r)
		case "/large":
			w.SetBody(make([]byte, 1<<20))
		case "/switch":
			require.NoError(t, w.SwitchProtocols("other", func(*listener.Conn) act.Action { return gate("another gate") }))
		}
		return nil
	}}
	const head = " HTTP/1.1\nHost: a\n"
	for send, want := range map[string]string{
		"":                    "the first request, for up to 10s",
		"GET /" + head + "\n": "the next request, for up to 1m15s",
		"GET /" + head:        "the rest of a request's head, for up to 10s",
		"POST /body" + head + "Content-Length: 9\n\n1234":                "more of the request's body, for up to 1m0s",
		"GET /gate" + head + "\n":                                        "a gate",
		"POST /" + head + "Content-Length: 9\n\n":                        "the rest of a body that the handler has left",
		"GET /switch" + head + "Connection: upgrade\nUpgrade: other\n\n": "another gate",
		"GET /large" + head + "\n":                                       "the client to take the response, for up to 1m0s",
	} {
		d := newDriver(t)
		c := d.dial(web, listener.Limits{})
		c.room = 1000
		c.send(raw(send))
		require.True(t, strings.HasPrefix(strings.Join(servertest.Said(d.s), ", "), want), "%s: %s", send, servertest.Said(d.s))
	}
}

func TestRequestsAreCounted(t *testing.T) {
	d := newDriver(t)
	var site httpd.Mux
	site.Handle("GET /{$}", hello)
	says := get + "\nGET /404 HTTP/1.1\nHost: a\n\nHEAD / HTTP/1.1\nHost: a\n\nbad\n\n"
	d.dial(&httpd.Server{Handler: site.Serve}, listener.Limits{}).send(raw(says))
	counts := servertest.CountsOf(d.s)
	require.EqualValues(t, 3, counts["http_requests_total"])
	require.EqualValues(t, 2, counts["http_responses_2xx_total"])
	require.EqualValues(t, 2, counts["http_responses_4xx_total"])
}

// What was broken: package inspect showed up to 200 bytes of the path, which may be a secret of a client.
func TestANameForOthersHasNothingOfTheClient(t *testing.T) {
	var mux httpd.Mux
	wait := func(*httpd.Response, *httpd.Request) act.Action { return &listener.Sleep{For: time.Hour} }
	mux.Handle("GET /reset/{token}", wait)
	mux.Handle("/any/{rest...}", wait)
	mux.Handle("BREW /pot/{name}", wait)
	for send, row := range map[string]struct {
		handler httpd.Handler
		want    string
	}{
		"GET /reset/secret":  {mux.Serve, "httpd: GET /reset/{token}"},
		"HEAD /reset/secret": {mux.Serve, "httpd: HEAD /reset/{token}"},
		"PUT /any/secret":    {mux.Serve, "httpd: PUT /any/{rest...}"},
		"BREW /pot/secret":   {mux.Serve, "httpd: BREW /pot/{name}"},
		"GET /secret":        {wait, "httpd: GET"},
		"SECRET /secret":     {wait, "httpd: a method of its own"},
	} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(send + " HTTP/1.1\r\nHost: a\r\n\r\n")
		var said act.Description
		c.host.Describe(&said)
		require.Equal(t, row.want, said.Name, send)
	}
}
