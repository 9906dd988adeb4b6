package nethttp_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

// Deadlines are often long after the end of the answer. They do not keep the request until then.
func TestDeadlinesDoNotKeepRequests(t *testing.T) {
	var freed atomic.Int32
	h := serve(t, &nethttp.Adapter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runtime.AddCleanup(r, func(int) { freed.Add(1) }, 0)
		flow := http.NewResponseController(w)
		_ = flow.SetReadDeadline(time.Now().Add(time.Hour))
		_ = flow.SetWriteDeadline(time.Now().Add(time.Hour))
		_, _ = io.WriteString(w, "hello")
	})}, patience)
	const n = 10
	c := h.dial()
	for range n {
		c.send(post("Content-Length: 5", "hello"))
		_, err := c.answer("POST")
		require.NoError(t, err)
	}
	_ = c.Close()
	require.NoError(t, h.end())
	h.until("the requests are the collector's", func() bool {
		runtime.GC()
		return freed.Load() >= n-2 // one may be in a register or a pool
	})
}

// addressed is a servertest.Replay that has addresses, and looks at the memory of connections while something is sent.
type addressed struct {
	servertest.Replay
	s       *act.Scheduler
	asked   int   // for addresses
	held    int   // bytes at most
	written int64 // as OnResponse has it
	slow    bool  // the peer takes what is queued when a task waits for that
	queued  int
}

func (m *addressed) LocalAddr() net.Addr { m.asked++; return &net.TCPAddr{Port: 1} }
func (m *addressed) PeerAddr() net.Addr  { m.asked++; return &net.UnixAddr{Net: "unix"} }

func (m *addressed) Send(head, p []byte, room int) (int, error) {
	m.held = max(m.held, budget.Of(m.s).Total())
	if m.slow {
		p = p[:min(len(p), max(0, room-m.queued))]
		m.queued += len(head) + len(p)
	}
	return m.Replay.Send(head, p, room)
}

func (m *addressed) Queued() (int, error) { return m.queued, nil }

func (m *addressed) AwaitOutput(w act.Waker, _ int) {
	m.queued = 0
	w.Wake()
}

// replays returns a stream, and a function that has an Inline handler answer a request on it.
func replays(t testing.TB, l listener.Limits, h http.HandlerFunc) (m *addressed, once func()) {
	s := act.New(act.Config{})
	t.Cleanup(func() { _ = s.Close() })
	m = &addressed{Replay: servertest.Replay{Says: []byte(raw(get))}, s: s}
	web := &httpd.Server{Handler: (&nethttp.Adapter{Inline: true, Handler: h}).Serve,
		OnResponse: func(w *httpd.Response, _ *httpd.Request) { m.written = w.Written() }}
	s.Spawn(web.Serve(listener.NewConn(s, m, l)))
	return m, func() {
		m.Again()
		for n := 1; n > 0; {
			n, _ = s.Step(10)
		}
	}
}

func TestWhatARequestTakes(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	from := ""
	m, once := replays(t, listener.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		from = r.RemoteAddr
		_, _ = io.WriteString(w, "hello")
	})
	once()
	require.LessOrEqual(t, testing.AllocsPerRun(100, once), 12.0)
	require.Equal(t, 2, m.asked, "the addresses, once for all requests")
	require.Equal(t, "@", from, "as net/http calls a client without a name, of a Unix socket")
}

// What an inline handler writes is kept in blocks, which count for the budget until they are sent, and serve the next answer.
func TestWhatALargeInlineAnswerTakes(t *testing.T) {
	tier.NoRace(t, "counts memory, and drops some of what a sync.Pool has")
	const size = 512 << 10
	piece := make([]byte, size/32)
	m, once := replays(t, listener.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		for range 32 {
			_, _ = w.Write(piece)
		}
	})
	once()
	require.GreaterOrEqual(t, m.held, size)
	require.EqualValues(t, size, m.written)
	require.Less(t, budget.Of(m.s).Total(), size/8, "behind the answer")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		once()
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5*size), "in ten answers")
	require.Greater(t, m.Sent, 11*size)
}
