package httpd_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

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
		name, ok := hook.Redacted(c.host.action)
		require.True(t, ok)
		require.Equal(t, row.want, name, send)
	}
}
