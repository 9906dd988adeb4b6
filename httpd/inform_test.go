package httpd_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

var preload = httpd.NewField("Link", "</a.css>; rel=preload")

const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"

func TestInterimResponses(t *testing.T) {
	for text, want := range map[string]string{
		"inform 103":                "103 200",
		"write 5, inform 103":       "103 200",
		"flush, inform 103 ErrLate": "200",
		"date, inform 103 error":    "500!",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			says := raw(strings.Replace(get, "GET", method, 1) + "\n")
			for _, pieces := range [][]string{{says}, cut(says, nil)} {
				c := newDriver(t).dial(&httpd.Server{Handler: does(t, text)}, listener.Limits{}).send(pieces...)
				require.Equal(t, want, statuses(c.check(t, asked{head: method == "HEAD"})), text)
			}
		}
	}
	inform := func(w *httpd.Response, _ *httpd.Request) act.Action {
		require.NoError(t, w.Inform(103, preload, httpd.Field{}))
		return nil
	}
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: inform}, listener.Limits{}).send(raw(get + "\n"))
	require.True(t, strings.HasPrefix(c.received(), hints+"HTTP/1.1 200 OK\r\n"))
}

// 100 by Inform is the answer to Expect; no other one follows.
func TestContinueByInform(t *testing.T) {
	for name, says := range map[string]string{"sized": post + "Content-Length: 5\n", "chunked": coded} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
			require.NoError(t, w.Inform(103, preload), "which is no answer")
			require.NoError(t, w.Inform(100))
			return echo(w, r)
		}}, listener.Limits{}).send(raw(says + "Expect: 100-continue\n\n"))
		require.Equal(t, hints+"HTTP/1.1 100 Continue\r\n\r\n", string(c.out), name)
		body := map[string]string{"sized": "hello", "chunked": "5\nhello\n0\n\n"}[name]
		all := c.send(raw(body)).check(t)
		require.Equal(t, "103 100 200", statuses(all), name)
		require.Equal(t, "hello", all[2].body)
	}
	d := newDriver(t) // the body is on its way, so where the next request begins is known
	c := d.dial(&httpd.Server{Handler: does(t, "inform 100")}, listener.Limits{}).send(raw(post + "Expect: 100-continue\nContent-Length: 5\n\n"))
	c.send("hello", raw(behind))
	require.Equal(t, "100 200 100 200", statuses(c.check(t)))
}
