package httpd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// RFC 9110 9.3.6, RFC 9112 3.2.3: with a handler for CONNECT its target is an authority or a path, its lines may end in LF, as
// net/rpc sends them, and an answer with a success has no length. Nothing after it is a request.
func TestConnect(t *testing.T) {
	d := newDriver(t)
	for says, want := range map[string]string{
		"CONNECT b:80 HTTP/1.1\nHost: a\n\n":           "200! CONNECT b:80 path=/ host=b:80",
		"CONNECT [::1]:80 HTTP/1.1\nHost: a\n\n":       "200! CONNECT [::1]:80 path=/ host=[::1]:80",
		"CONNECT /rpc?a HTTP/1.0␊␊":                    "200! CONNECT /rpc?a 1.0 host=",
		"CONNECT /rpc HTTP/1.1␊Host: a␊X: b\n\n":       "200! CONNECT /rpc X=b",
		"CONNECT b:80 HTTP/1.1\n\n":                    "400! ",
		"CONNECT http://b/ HTTP/1.1\nHost: a\n\n":      "400! ",
		"CONNECT :80 HTTP/1.1\nHost: a\n\n":            "400! ",
		"CONNECT b:80/ HTTP/1.1\nHost: a\n\n":          "400! ",
		"CONNECT * HTTP/1.1\nHost: a\n\n":              "400! ",
		"CONNECT /rpc HTTP/1.0␍␊␍␍␊":                   "400! ",
		"GET / HTTP/1.0␊␊":                             "400! ",
		get + "\nCONNECT / HTTP/1.0␊␊":                 "200 200! GET /; CONNECT / 1.0 host=",
		"CONNECT / HTTP/1.1\nHost: a\nX: a␍\n\n":       "400! ",
		"CONNECT /404 HTTP/1.1\nHost: a\n\n":           "404! ",
		"CONNECT /hijack HTTP/1.1\nHost: a\n\nhello\n": "HELLO ",
	} {
		for _, pieces := range [][]string{{raw(says + behind)}, cut(raw(says+behind), nil)} {
			k := &recorder{}
			mux := &httpd.Mux{}
			mux.Handle("/", k.serve)
			mux.Handle("CONNECT /", k.serve)
			mux.Handle("CONNECT /404", does(t, "error 404"))
			mux.Handle("CONNECT /hijack", hijacking)
			c := d.dial(&httpd.Server{Handler: mux.Serve, Connect: mux.Serve}, listener.Limits{}).send(pieces...)
			got, _, _ := strings.Cut(string(c.out), "\n")
			if got != "HELLO" { // through the tunnel
				got = statuses(c.check(t))
			}
			require.Equal(t, want, got+" "+k.String(), says)
			if strings.HasPrefix(got, "200!") {
				require.NotContains(t, string(c.out), "Content-Length")
				require.NotContains(t, string(c.out), "Transfer-Encoding")
			}
			c.endInput()
		}
	}
	mux := &httpd.Mux{} // patterns that do not name the method are for others
	mux.Handle("/", (&recorder{}).serve)
	c := d.dial(&httpd.Server{Handler: mux.Serve, Connect: mux.Serve}, listener.Limits{})
	require.Equal(t, "501!", statuses(c.send(raw("CONNECT / HTTP/1.1\nHost: a\n\n")).check(t)))
}

// A head may be larger, or has to be smaller. However many fields there are, no framing field is overlooked.
func TestMaxHeadAndMaxFields(t *testing.T) {
	const large = 1 << 20
	fields := func(n int) string { return strings.Repeat("Content-Length: 5\n", n) }
	d := newDriver(t)
	for _, row := range []struct {
		web  httpd.Server
		says string
		want string
	}{
		{httpd.Server{MaxHead: large}, "X: " + strings.Repeat("x", large-100) + "\n", "200"},
		{httpd.Server{MaxHead: large}, "X: " + strings.Repeat("x", large) + "\n", "431!"},
		{httpd.Server{MaxHead: large}, strings.Repeat("X:\n", 100), "431!"},
		{httpd.Server{MaxFields: 1000}, strings.Repeat("X:\n", 999), "200"},
		{httpd.Server{MaxFields: 1000}, strings.Repeat("X:\n", 1000), "431!"},
		{httpd.Server{MaxFields: 1000}, fields(256), "400!"},
		{httpd.Server{MaxFields: 1000}, fields(257), "400!"},
		{httpd.Server{MaxHead: 100}, "X: " + strings.Repeat("x", 100) + "\n", "431!"},
		{httpd.Server{MaxHead: 100}, "", "200"},
	} {
		row.web.Handler = hello
		c := d.dial(&row.web, listener.Limits{Read: 2 * large}).send(raw(get + row.says + "\n"))
		require.Equal(t, row.want, statuses(c.check(t)), "%+v %.40q", row.web, row.says)
		c.endInput()
	}
	for most, want := range map[int]string{0: "414!", large: "200"} {
		c := d.dial(&httpd.Server{Handler: hello, MaxHead: most}, listener.Limits{Read: large})
		c.send(raw(fmt.Sprintf("GET /%s HTTP/1.1\nHost: a\n\n", strings.Repeat("x", 20_000))))
		require.Equal(t, want, statuses(c.check(t)))
	}
}
