package httpd_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

// once has a request come and be answered.
func (d *driver) once(m *servertest.Replay) {
	m.Again()
	for n := 1; n > 0; {
		n, _ = d.s.Step(10)
	}
	d.now += 50 * time.Millisecond // so that the date changes, too
}

// newReplay also returns a function that has a server read one request and answer it.
func newReplay(t testing.TB, h httpd.Handler, request []byte) (m *servertest.Replay, once func()) {
	tier.NoRace(t, "counts allocations") // and loans are spoilt then
	d := newDriver(t)
	m = &servertest.Replay{Says: request}
	conn := listener.NewConn(d.s, m, listener.Limits{})
	d.s.Spawn((&httpd.Server{Handler: h}).Serve(conn))
	once = func() { d.once(m) }
	once()
	return m, once
}

func browser(t testing.TB) []byte {
	text, err := os.ReadFile("testdata/browser.txt")
	require.NoError(t, err)
	return text
}

// A request that comes in one piece and is answered in one turn costs no allocation.
func TestAPlainRequestAllocatesNothing(t *testing.T) {
	body := []byte("Hello, World!")
	var site httpd.Mux
	site.Handle("GET /{$}", hello)
	site.Handle("/users/{id}", func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.Write(r.Value("id"))
		return nil
	})
	for name, row := range map[string]struct {
		handler httpd.Handler
		request string
	}{
		"a few bytes":         {hello, get + "\n"},
		"what a browser says": {hello, strings.ReplaceAll(string(browser(t)), "\r\n", "\n")},
		"HTTP/1.0":            {hello, "GET / HTTP/1.0\nConnection: keep-alive\n\n"},
		"fields that are looked at": {func(w *httpd.Response, r *httpd.Request) act.Action {
			w.Add("X", "y")
			_, _ = w.Write(r.Header("Host"))
			_, _ = w.Write(r.Query())
			return nil
		}, "GET /a?b=c HTTP/1.1\nHost: a\n\n"},
		"whole":               {func(w *httpd.Response, _ *httpd.Request) act.Action { w.SetBody(body); return nil }, get + "\n"},
		"an error":            {func(w *httpd.Response, _ *httpd.Request) act.Action { w.StatusOnly(404); return nil }, get + "\n"},
		"no content":          {func(w *httpd.Response, _ *httpd.Request) act.Action { w.SetStatus(204); return nil }, get + "\n"},
		"streamed":            {func(w *httpd.Response, _ *httpd.Request) act.Action { _ = w.Flush(); _, _ = w.Write(body); return nil }, get + "\n"},
		"a body":              {httpd.WithBody(0, func(w *httpd.Response, _ *httpd.Request, b []byte) act.Action { _, _ = w.Write(b); return nil }), post + "Content-Length: 5\n\nhello"},
		"what is unread":      {hello, post + "Content-Length: 5\n\nhello"},
		"chunks":              {hello, coded + "\n5\nhello\n0\n\n"},
		"a Mux":               {site.Serve, get + "\n"},
		"a Mux, with a value": {site.Serve, "GET /users/Ada%20L. HTTP/1.1\nHost: a\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m, once := newReplay(t, row.handler, []byte(raw(row.request)))
			require.Zero(t, testing.AllocsPerRun(200, once))
			require.Greater(t, m.Sent, 200*len("HTTP/1.1 200 OK\r\n"))
		})
	}
}

// What a body costs is in proportion to what has come of it, not to what was announced.
func TestABodyThatIsOnlyAnnouncedCostsNoMemory(t *testing.T) {
	d := newDriver(t)
	web := &httpd.Server{Handler: httpd.WithBody(64<<20, func(*httpd.Response, *httpd.Request, []byte) act.Action { return nil })}
	var all []*client
	for range 10 {
		all = append(all, d.dial(web, listener.Limits{}).send(raw(post+"Content-Length: 60000000\n\nx")))
	}
	require.Less(t, budget.Of(d.s).Total(), 1<<20)
	require.Equal(t, open, all[0].state)
}

// A connection between two requests costs what the packages below keep for it, and a session. Here the latter is
// measured, with its Task and its Conn.
func TestMeasureAConnectionAtRest(t *testing.T) {
	tier.Measure(t, "bytes of a connection at rest")
	const n = 10_000
	const below = 48 + 49 + 32 // measured where they are: the stream, its slot among the events, and the session of the service
	request := []byte(raw(get + "\n"))
	price.AtMost(t, "bytes of a connection at rest", 384, func() float64 {
		m, d := make([]servertest.Replay, n), newDriver(t)
		web := &httpd.Server{Handler: hello}
		before := heap()
		for i := range m {
			m[i].Says = request
			m[i].Again()
			d.s.Spawn(web.Serve(listener.NewConn(d.s, &m[i], listener.Limits{})))
			d.settle()
			require.NotZero(t, m[i].Sent)
		}
		each := float64(heap()-before)/n + below
		runtime.KeepAlive(m)
		return each
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has put off
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
