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
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
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

// addressed is a servertest.Replay that has addresses.
type addressed struct {
	servertest.Replay
	peer  net.Addr
	asked int // for them
}

func (m *addressed) LocalAddr() net.Addr { m.asked++; return &net.TCPAddr{Port: 1} }
func (m *addressed) PeerAddr() net.Addr  { m.asked++; return m.peer }

func TestWhatARequestTakes(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	s := act.New(act.Config{})
	defer s.Close()
	from := ""
	web := &httpd.Server{Handler: (&nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from = r.RemoteAddr
		_, _ = io.WriteString(w, "hello")
	})}).Serve}
	m := &addressed{Replay: servertest.Replay{Says: []byte(raw(get))}, peer: &net.UnixAddr{Net: "unix"}}
	s.Spawn(web.Serve(listener.NewConn(s, m, listener.Limits{})))
	once := func() {
		m.Again()
		for n := 1; n > 0; {
			n, _ = s.Step(10)
		}
	}
	once()
	require.LessOrEqual(t, testing.AllocsPerRun(100, once), 12.0)
	require.Equal(t, 2, m.asked, "the addresses, once for all requests")
	require.Equal(t, "@", from, "as net/http calls a client without a name, of a Unix socket")
}
