package httpd_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

func TestStatesOfAConnection(t *testing.T) {
	handlers := map[string]httpd.Handler{
		"/":      hello,
		"/panic": func(*httpd.Response, *httpd.Request) act.Action { panic("of a handler") },
		"/wait":  func(*httpd.Response, *httpd.Request) act.Action { return waiting{} },
	}
	for way, take := range takeovers {
		handlers["/"+way] = func(w *httpd.Response, _ *httpd.Request) act.Action {
			require.NoError(t, take.take(w, lines(new([]string))))
			return nil
		}
	}
	to := func(path string) string { return strings.Replace(upgrade, "GET / ", "GET "+path+" ", 1) }
	for name, row := range map[string]struct {
		says   []string
		states string // after each of them, and after the end of the client
	}{
		"no request":             {nil, "new; closed"},
		"empty lines":            {[]string{"\n", get + "\n"}, "new; ; active idle; closed"},
		"half a head":            {[]string{"GE"}, "new; active; closed"},
		"a head in two pieces":   {[]string{"GET / HT", "TP/1.1\nHost: a\n\n"}, "new; active; idle; closed"},
		"two requests":           {[]string{get + "\n", get + "\n"}, "new; active idle; active idle; closed"},
		"pipelined":              {[]string{get + "\n" + get + "\n"}, "new; active idle active idle; closed"},
		"the last":               {[]string{get + "Connection: close\n\n"}, "new; active closed; "},
		"refused":                {[]string{"GET\n\n"}, "new; active closed; "},
		"the handler waits":      {[]string{to("/wait")}, "new; active; closed; "},
		"a panic":                {[]string{to("/panic")}, "new; active closed; "},
		"it switches protocols":  {[]string{to("/SwitchProtocols"), "a\n"}, "new; active hijacked; ; "},
		"it is hijacked":         {[]string{to("/Hijack"), "a\n"}, "new; active hijacked; ; "},
		"a body is left to come": {[]string{post + "Content-Length: 5\n\n", "hello"}, "new; active; idle; closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var states []string
			seen := func() string {
				defer func() { states = nil }()
				return strings.Join(states, " ")
			}
			d := newDriver(t)
			c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
				return handlers[string(r.Path())](w, r)
			}, OnState: func(_ *listener.Conn, s httpd.ConnState) {
				states = append(states, [...]string{"new", "active", "idle", "hijacked", "closed"}[s])
			}}, listener.Limits{})
			all := []string{seen()}
			for _, s := range row.says {
				c.send(raw(s))
				all = append(all, seen())
			}
			if name == "the handler waits" { // a shutdown drops it
				c.host.action.(act.Abandoner).Abandon()
				all = append(all, seen())
			}
			c.endInput()
			_ = d.s.Close()
			require.Equal(t, row.states, strings.Join(append(all, seen()), "; "))
		})
	}
}

// waiting is an action that nothing ends.
type waiting struct{}

func (waiting) Act(*act.Task) act.Directive { return act.Wait }

// What clients do wrong leaves one line in a second, even if they are cut off. Failures of a handler do not count.
func TestRefusalsLeaveALine(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{MaxBody: 1, Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if err := map[string]error{"/abort": httpd.ErrAbort, "/fail": errOurs}[string(r.Path())]; err != nil {
			return failing(err)
		}
		_ = w.Flush() // so it is too late for a refusal
		return echo(w, r)
	}}
	refused := func() (all []string) {
		d.pass(time.Second)
		for _, e := range d.all.TakeAll() {
			if m := e.ContextMap(); e.Level == zap.InfoLevel {
				all = append(all, fmt.Sprint(m["in a second"], " ", m["the last"], " ", m["peer"]))
			}
		}
		return all
	}
	d.dial(web, listener.Limits{}) // stays, so that the scheduler has something left
	for _, says := range []string{"GET\n\n", coded + "\nno size\n", post + "Content-Length: 2\n\n"} {
		d.dial(web, listener.Limits{}).send(raw(says))
	}
	require.Equal(t, []string{"3 httpd: a body that is longer than Server.MaxBody 192.0.2.1:4711"}, refused())
	for _, path := range []string{"/abort", "/fail"} {
		d.dial(web, listener.Limits{}).send(raw("GET " + path + " HTTP/1.1\nHost: a\n\n"))
	}
	require.Empty(t, refused())
}
