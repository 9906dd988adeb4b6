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

// turns is an action of one call a turn.
func turns(calls ...func(t *act.Task)) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		calls[0](t)
		if calls = calls[1:]; len(calls) == 0 {
			return act.Done
		}
		return act.Yield
	})
}

func TestInterimResponses(t *testing.T) {
	inform := func(w *httpd.Response, _ *httpd.Request) act.Action {
		require.NoError(t, w.Inform(103, preload, httpd.Field{}))
		return nil
	}
	for name, row := range map[string]struct {
		handler httpd.Handler
		says    string
		want    string
	}{
		"to HEAD": {inform, strings.Replace(get, "GET", "HEAD", 1) + "\n", "103 200"},
		"behind what was gathered": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString("hello")
			require.NoError(t, w.Inform(103))
			return nil
		}, get + "\n", "103 200"},
		"behind the head": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.Flush()
			require.Equal(t, httpd.ErrLate, w.Inform(103))
			return nil
		}, get + "\n", "200"},
		"of a response that has failed": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.Add("Date", "today")
			require.Error(t, w.Inform(103))
			return nil
		}, get + "\n", "500!"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pieces := range [][]string{{raw(row.says)}, cut(raw(row.says), nil)} {
				d := newDriver(t)
				c := d.dial(&httpd.Server{Handler: row.handler}, listener.Limits{}).send(pieces...)
				q := asked{head: strings.HasPrefix(row.says, "HEAD"), old: strings.Contains(row.says, "HTTP/1.0")}
				require.Equal(t, row.want, statuses(c.check(t, q)))
			}
		})
	}
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: inform}, listener.Limits{}).send(raw(get + "\n"))
	require.True(t, strings.HasPrefix(c.received(), hints+"HTTP/1.1 200 OK\r\n"))
}

func TestAnInterimResponseOfAnotherStatusPanics(t *testing.T) {
	for _, code := range []int{99, 101, 200} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
			_ = w.Inform(code)
			return nil
		}}, listener.Limits{}).send(raw(get + "\n"))
		require.Equal(t, aborted, c.state, code)
		require.Contains(t, d.logs.All()[0].ContextMap()["error"], "no status of an interim response")
	}
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
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		require.NoError(t, w.Inform(100))
		return nil
	}}, listener.Limits{}).send(raw(post + "Expect: 100-continue\nContent-Length: 5\n\n"))
	c.send("hello", raw(behind))
	require.Equal(t, "100 200 100 200", statuses(c.check(t)))
}
