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
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Deadlines are often far behind the end of the answer. They do not keep the request until then.
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

// repeated is the stream of a client that sends the same request again and again.
type repeated struct {
	monitor.Stream
	there  bool
	asked  int // for addresses
	reader act.Waker
}

func (m *repeated) Lend(int) ([]byte, error) {
	if !m.there {
		return nil, monitor.ErrWouldBlock
	}
	m.there = false
	return []byte(raw(get)), nil
}

func (m *repeated) Send(head, p []byte, _ int) (int, error) { return len(p), nil }
func (m *repeated) Queued() (int, error)                    { return 0, nil }
func (m *repeated) AwaitInput(w act.Waker)                  { m.reader = w }

func (m *repeated) LocalAddr() net.Addr { m.asked++; return &net.TCPAddr{Port: 1} }
func (m *repeated) PeerAddr() net.Addr  { m.asked++; return &net.TCPAddr{Port: 2} }

func TestWhatARequestTakes(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	s := act.New(act.Config{})
	defer s.Close()
	web := &httpd.Server{Handler: (&nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") })}).Serve}
	m := &repeated{}
	s.Spawn(web.Serve(listener.NewConn(s, m, listener.Limits{})))
	once := func() {
		m.there = true
		m.reader.Wake()
		for n := 1; n > 0; {
			n, _ = s.Step(10)
		}
	}
	once()
	require.LessOrEqual(t, testing.AllocsPerRun(100, once), 12.0)
	require.Equal(t, 2, m.asked, "the addresses, once for all requests")
}
