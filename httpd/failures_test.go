package httpd_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// A handler that fails, or whose response is not as announced. Before the head is out that is a 500, after it the
// connection is aborted, so that no client takes a part for the whole. It is reported in either case.
func TestAHandlerThatFails(t *testing.T) {
	flushed := func(h httpd.Handler) httpd.Handler { // the same when it is too late
		return func(w *httpd.Response, r *httpd.Request) act.Action {
			_ = w.Flush()
			return h(w, r)
		}
	}
	special := map[string]httpd.Handler{
		"does not say why": func(*httpd.Response, *httpd.Request) act.Action {
			return act.Func(func(*act.Task) act.Directive { return act.Failed })
		},
		"does not write the rest": func(w *httpd.Response, _ *httpd.Request) act.Action {
			return act.Func(func(*act.Task) act.Directive {
				n, err := w.Write(make([]byte, 200<<10))
				require.Less(t, n, 200<<10)
				require.Implements(t, (*act.Blocked)(nil), err)
				return act.Done
			})
		},
		"resets": func(*httpd.Response, *httpd.Request) act.Action { // its backend; a service takes it for the end of its own connection
			return failing(fmt.Errorf("backend: %w", syscall.ECONNRESET))
		},
	}
	for what, row := range map[string]struct {
		early    string // what it is answered with
		late     string // if the head is out
		reported string
	}{
		"fail":                        {"500!", "aborted", "the disk is full"},
		"does not say why":            {"500!", "aborted", "without saying why"},
		"does not write the rest":     {"aborted", "aborted", "did not take everything"},
		"resets":                      {"500!", "aborted", "backend: "},
		"length 5, write 4":           {"500!", "", "not as long"},
		"length 5, write 4, flush":    {"aborted", "", "not as long"},
		"length 5, write 6 ErrLength": {"500!", "", "not as long"},
		"length 5, whole 6":           {"500!", "", "not as long"},
		"length 5, send 6":            {"aborted", "", "not as long"},
		"send 6":                      {"500!", "aborted", "without SetLength"},
		"length 11, send 11":          {"aborted", "", "unexpected EOF"}, // the file has 10
		"write 5, status 204":         {"500!", "", "has no content"},
		"write 5, whole 5":            {"500!", "aborted", "has been sent"},
		"whole 5, write 5 ErrLate":    {"500!", "aborted", "has been sent"},
		"field":                       {"200", "aborted", "has been sent"},
		"error 404":                   {"404", "aborted", "has been sent"},
		"status 404":                  {"404", "aborted", "has been sent"},
	} {
		t.Run(what, func(t *testing.T) {
			for _, late := range []bool{false, true} {
				d := newDriver(t)
				want, h := row.early, special[what]
				if h == nil {
					h = does(t, what)
				}
				if late {
					want, h = row.late, flushed(h)
				}
				if want == "" {
					continue
				}
				c := d.dial(&httpd.Server{Handler: h}, listener.Limits{})
				c.room = 20_000
				c.send(raw(get + "\n"))
				if c.state == aborted {
					require.Equal(t, want, "aborted", "late: %v", late)
					require.Equal(t, act.Failed, c.verdict)
					require.NotErrorIs(t, c.err, syscall.ECONNRESET)
				} else {
					require.Equal(t, want, statuses(c.check(t)), "late: %v", late)
				}
				if want == "200" || want == "404" {
					require.Zero(t, d.logs.Len())
					continue
				}
				require.Equal(t, 1, d.logs.Len(), "reported once")
				said := d.logs.All()[0].ContextMap()
				require.Contains(t, said["error"], row.reported)
				require.Equal(t, "httpd: GET /", said["task"])
			}
		})
	}
}

// ErrAbort aborts the connection at any time, and is not a failure by itself.
func TestErrAbort(t *testing.T) {
	for name, row := range map[string]struct {
		err      error
		reported string
	}{
		"alone":             {httpd.ErrAbort, ""},
		"with a reason":     {fmt.Errorf("%w: %w", httpd.ErrAbort, errOurs), "the disk is full"},
		"with that of HTTP": {errors.Join(httpd.ErrAbort, httpd.ErrSlow), "too slowly"},
	} {
		for i, begun := range [][]step{nil, {{what: "write", n: 5}}, {{what: "flush"}, {what: "yield"}}} {
			d := newDriver(t)
			told := 0
			c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
				return act.Seq(steps(begun, nil, w), failing(row.err))
			}, OnResponse: func(*httpd.Response, *httpd.Request) { told++ }}, listener.Limits{}).send(raw(get + "\n"))
			require.Equal(t, aborted, c.state, name)
			require.Equal(t, i == 2, len(c.out) > 0, name)
			require.Equal(t, 1, told)
			if row.reported == "" {
				require.Equal(t, act.Done, c.verdict)
				require.Zero(t, d.logs.Len())
				require.Equal(t, 1, d.all.FilterMessage("a connection is cut").Len())
				continue
			}
			require.Equal(t, act.Failed, c.verdict, name)
			require.Equal(t, 1, d.logs.Len())
			require.Contains(t, d.logs.All()[0].ContextMap()["error"], row.reported)
		}
	}
}

// A handler may ignore the error of a body, but then it is unknown where the next request begins.
func TestAHandlerThatIgnoresTheErrorOfABody(t *testing.T) {
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		_, err := r.Body.Peek()
		_, again := r.Body.Peek()
		require.Equal(t, err, again)
		_, _ = w.WriteString(err.Error())
		return nil
	}}
	d := newDriver(t)
	c := d.dial(web, listener.Limits{}).send(raw(coded + "\nxyz\n" + behind))
	all := c.check(t)
	require.Equal(t, "200!", statuses(all))
	require.Contains(t, all[0].body, "chunk size")
}

// RFC 9110 5.5, RFC 9112 2.2: no value that a handler gives can end a field, and no field of the server is sent twice.
func TestInvalidFieldsOfAResponse(t *testing.T) {
	for _, f := range [][2]string{{"X", "a\r\nY: b"}, {"X", "a\nb"}, {"X", "a\rb"}, {"X", "a\x00b"}, {"X", "\x7f"}, {"X", "\x1b[2J"},
		{"X\r\nY", "a"}, {"X ", "a"}, {"", "a"}, {"X:", "a"}, {"\xc3\x89", "a"}, {"Date", "a"}, {"date", "a"}, {"Content-Length", "1"},
		{"CONTENT-LENGTH", "1"}, {"Transfer-Encoding", "chunked"}, {"Connection", "close"}} {
		for name, h := range map[string]httpd.Handler{
			"field":   func(w *httpd.Response, _ *httpd.Request) act.Action { w.Add(f[0], f[1]); return nil },
			"trailer": func(w *httpd.Response, _ *httpd.Request) act.Action { w.AddTrailer(f[0], f[1]); return nil },
		} {
			if name == "trailer" && strings.EqualFold(f[0], "date") {
				continue
			}
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: h}, listener.Limits{}).send(raw(get + "\n"))
			require.Equal(t, "500!", statuses(c.check(t)), "%s %q", name, f)
			require.Contains(t, d.logs.All()[0].ContextMap()["error"], "not a ")
		}
	}
}

// A panic ends the connection at once and is reported with the request; the other connections go on.
func TestAHandlerThatPanics(t *testing.T) {
	for name, h := range map[string]httpd.Handler{
		"at once":                    does(t, "panic"),
		"in its second turn":         does(t, "yield, panic"),
		"with a status that is none": does(t, "status 199"),
		"with a negative length":     does(t, "length -1"),
		"with what is not interim":   does(t, "inform 200"),
		"with another protocol":      does(t, "inform 101"),
		"with less than a status":    does(t, "inform 99"),
		"by taking more than there is": func(_ *httpd.Response, r *httpd.Request) act.Action {
			r.Body.Discard(1)
			return nil
		},
	} {
		d := newDriver(t)
		other := d.dial(&httpd.Server{Handler: (&recorder{}).serve}, listener.Limits{}).send(raw(get))
		c := d.dial(&httpd.Server{Handler: h}, listener.Limits{}).send(raw(get + "\n"))
		require.Equal(t, aborted, c.state, name)
		require.Empty(t, string(c.out), name)
		require.Equal(t, 1, d.logs.Len(), name)
		require.Equal(t, "httpd: GET /", d.logs.All()[0].ContextMap()["task"], name)
		require.Equal(t, "200", statuses(other.send(raw("\n")).check(t)), name)
	}
}

// A path may hold bytes that are not ASCII, and so escape sequences of a terminal. The name of the task, which is
// logged, does not.
func TestTheNameInALogIsPrintable(t *testing.T) {
	d := newDriver(t)
	d.dial(&httpd.Server{Handler: does(t, "panic")}, listener.Limits{}).send(raw("GET /{a}|\xe9\u009b2J?secret HTTP/1.1\nHost: a\n\n"))
	require.Equal(t, "httpd: GET /{a}|%E9%C2%9B2J", d.logs.All()[0].ContextMap()["task"])
}

// StatusOnly takes the place of all that was written or added before.
func TestStatusOnlyForgetsWhatWasAddedBefore(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.Add("Location", "/elsewhere")
		w.AddField(httpd.NewField("Set-Cookie", "a=b"))
		w.AddTrailer("Sum", "1")
		w.SetLength(4)
		_, _ = w.WriteString("well")
		w.StatusOnly(404)
		return nil
	}}, listener.Limits{}).send(raw(get + "\n"))
	require.Equal(t, "HTTP/1.1 404 Not Found\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Length: 14\r\n"+
		"Content-Type: text/plain; charset=utf-8\r\n\r\n404 Not Found\n", c.received())
}

// Set takes the place of all fields with its name, in any case, and of no others.
func TestSetReplacesTheFieldsOfItsName(t *testing.T) {
	d := newDriver(t)
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		w.StatusOnly(404)
		w.Add("A", "1")
		w.Set("content-type", "a/b")
		w.Add("a", "2")
		w.Add("AA", "3")
		w.Set("A", "4")
		return nil
	}}, listener.Limits{}).send(raw(get + "\n"))
	require.Equal(t, "HTTP/1.1 404 Not Found\r\nDate: Sat, 21 Nov 2026 12:00:00 GMT\r\nContent-Length: 14\r\n"+
		"content-type: a/b\r\nAA: 3\r\nA: 4\r\n\r\n404 Not Found\n", c.received())
}
