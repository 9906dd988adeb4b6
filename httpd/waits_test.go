package httpd_test

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// stopped is a clock that stands still.
type stopped struct{}

func (stopped) Monotonic() time.Duration { return time.Hour }
func (stopped) Wall() time.Time          { return noon }

// gate is an action that waits for what its name says.
type gate string

func (gate) Act(t *act.Task) act.Directive { t.Waker(); return act.Wait }

func (g gate) Waits(add func(what string)) { add(string(g)) }

// A connection says which phase it is in, and until when it waits there.
func TestWaitsOfAConnection(t *testing.T) {
	large := make([]byte, 32<<20)
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		switch string(r.Path()) {
		case "/gate":
			return gate("a gate")
		case "/body":
			return httpd.WithBody(0, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil })(w, r)
		case "/large":
			w.SetBody(large)
		case "/switch":
			require.NoError(t, w.SwitchProtocols("other", func(*listener.Conn) act.Action { return gate("another gate") }))
		}
		return nil
	}}
	const head = " HTTP/1.1\r\nHost: a\r\n"
	for name, c := range map[string]struct {
		send string
		want []string // PEER stands for the address
	}{
		"before the first request": {"", []string{"the first request, for up to 10s", "input from PEER"}},
		"between two":              {"GET /" + head + "\r\n", []string{"the next request, for up to 1m15s", "input from PEER"}},
		"in a head":                {"GET /" + head, []string{"the rest of a request's head, for up to 10s", "input from PEER"}},
		"in a body": {"POST /body" + head + "Content-Length: 9\r\n\r\n1234",
			[]string{"more of the request's body, for up to 5s", "input from PEER"}},
		"in the handler's action":    {"GET /gate" + head + "\r\n", []string{"a gate", "the end of PEER"}},
		"behind a body that is left": {"POST /" + head + "Content-Length: 9\r\n\r\n", []string{"the rest of a body that the handler has left", "input from PEER"}},
		"in another protocol":        {"GET /switch" + head + "Connection: upgrade\r\nUpgrade: other\r\n\r\n", []string{"another gate"}},
		"in a response":              {"GET /large" + head + "\r\n", []string{"the client to take the response, for up to 1m0s", "room: "}},
		"in the last one": {"GET /large" + head + "Connection: close\r\n\r\n",
			[]string{"the client to take the response, for up to 1m0s", "room: "}},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{Clock: stopped{}})
			v := &service.TCP{Address: "127.0.0.1:0", Handler: web.Serve}
			require.NoError(t, v.Setup(l.S))
			conn, err := net.Dial("tcp", v.Addr().String())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			_, err = io.WriteString(conn, c.send)
			require.NoError(t, err)
			want := append([]string{"connections to " + v.Addr().String()}, c.want...)
			for i := range want {
				want[i] = strings.ReplaceAll(want[i], "PEER", conn.LocalAddr().String())
			}
			l.Until("it says "+strings.Join(want, ", "), func() bool {
				said := servertest.Said(l.S)
				if len(said) != len(want) {
					return false
				}
				for i := range want {
					if !strings.HasPrefix(said[i], want[i]) {
						return false
					}
				}
				return true
			})
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	l := servertest.New(t, act.Config{})
	web := &httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		if string(r.Path()) == "/404" {
			w.Error(404)
		}
		return nil
	}}
	v := &service.TCP{Address: "127.0.0.1:0", Handler: web.Serve}
	require.NoError(t, v.Setup(l.S))
	conn, err := net.Dial("tcp", v.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /404 HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\nbad\r\n\r\n")
	require.NoError(t, err)
	l.Until("four answers", func() bool {
		c := servertest.CountsOf(l.S)
		return c["http_responses_2xx_total"] == 2 && c["http_responses_4xx_total"] == 2
	})
	require.EqualValues(t, 3, servertest.CountsOf(l.S)["http_requests_total"])
}

// What was broken: package inspect showed up to 200 bytes of the path, which may be a secret of a client.
func TestANameForOthersHasNothingOfTheClient(t *testing.T) {
	var mux httpd.Mux
	wait := func(*httpd.Response, *httpd.Request) act.Action { return gate("a gate") }
	mux.Handle("GET /reset/{token}", wait)
	mux.Handle("/any/{rest...}", wait)
	mux.Handle("BREW /pot/{name}", wait)
	const head = " HTTP/1.1\r\nHost: a\r\n\r\n"
	for send, c := range map[string]struct {
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
		t.Run(send, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			v := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: c.handler}).Serve}
			require.NoError(t, v.Setup(l.S))
			servertest.Send(t, servertest.Dial(t, v.Addr()), send+head)
			names := func() (all []string) {
				hook.EachTask(l.S, 1, func(x hook.Task) bool {
					if name, ok := hook.Redacted(x.Action); ok {
						all = append(all, name)
					}
					return true
				})
				return all
			}
			l.Until("it is handled", func() bool { return slices.Contains(servertest.Said(l.S), "a gate") })
			require.Equal(t, []string{c.want}, names())
		})
	}
}
