package httpd_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// replay is a stream that delivers the same request again and again, and discards what is written.
type replay struct {
	monitor.Stream
	request []byte
	there   bool
	sent    int
	reader  act.Waker
}

func (m *replay) Lend(int) ([]byte, error) {
	if !m.there {
		return nil, monitor.ErrWouldBlock
	}
	m.there = false
	if race.Enabled {
		return bytes.Clone(m.request), nil // what is lent is spoilt behind the turn
	}
	return m.request, nil
}

func (m *replay) Send(head, p []byte, _ int) (int, error) {
	m.sent += len(head) + len(p)
	return len(p), nil
}

func (m *replay) Queued() (int, error) { return 0, nil }

func (m *replay) AwaitInput(w act.Waker) {
	if m.reader = w; m.there {
		w.Wake()
	}
}

// newReplay also returns a function that has a server read one request and answer it.
func newReplay(t testing.TB, h httpd.Handler, request []byte) (m *replay, once func()) {
	tier.NoRace(t, "counts allocations") // and loans are spoilt then
	d := newDriver(t)
	m = &replay{request: request}
	conn := listener.NewConn(d.s, m, listener.Limits{})
	d.s.Spawn((&httpd.Server{Handler: h}).Serve(conn))
	once = func() {
		m.there = true
		m.reader.Wake()
		for n := 1; n > 0; {
			n, _ = d.s.Step(10)
		}
		d.now += 50 * time.Millisecond // so that the date changes, too
	}
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
		"an error":            {func(w *httpd.Response, _ *httpd.Request) act.Action { w.Error(404); return nil }, get + "\n"},
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
			require.Greater(t, m.sent, 200*len("HTTP/1.1 200 OK\r\n"))
		})
	}
}

func BenchmarkRequest(b *testing.B) {
	for name, request := range map[string][]byte{"small": []byte(raw(get + "\n")), "browser": browser(b)} {
		b.Run(name, func(b *testing.B) {
			_, once := newReplay(b, hello, request)
			b.ReportAllocs()
			b.SetBytes(int64(len(request)))
			for b.Loop() {
				once()
			}
		})
	}
}

// A connection between two requests costs what the packages below keep for it, and a session. Here the latter is
// measured, with its Task and its Conn.
func TestCostOfAConnectionAtRest(t *testing.T) {
	const n = 10_000
	m, d := make([]replay, n), newDriver(t)
	web := &httpd.Server{Handler: hello}
	request := []byte(raw(get + "\n"))
	before := heap()
	for i := range m {
		m[i].request, m[i].there = request, true
		d.s.Spawn(web.Serve(listener.NewConn(d.s, &m[i], listener.Limits{})))
		d.settle()
		require.NotZero(t, m[i].sent)
	}
	each := int(heap()-before) / n
	// To this come, measured where they are: the stream, its slot among the events, and the session of the service.
	const below = 48 + 49 + 32
	t.Logf("%d B of heap, %d B with what lies below", each, each+below)
	require.LessOrEqual(t, each+below, 384)
	runtime.KeepAlive(m)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one has put off
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkPipelined(b *testing.B) {
	var site httpd.Mux
	site.Handle("GET /{$}", hello)
	site.Handle("GET /files/{path...}", hello)
	site.Handle("POST /echo", echo)
	request := raw("GET / HTTP/1.1\nHost: 127.0.0.1:8080\n\n")
	for _, depth := range []int{1, 16} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			_, once := newReplay(b, site.Serve, []byte(strings.Repeat(request, depth)))
			b.ReportAllocs()
			for b.Loop() {
				once()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/request")
		})
	}
}
