package nethttp_test

import (
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
)

// Deadlines are often far behind the end of the answer. They do not keep the request until then.
func TestDeadlinesDoNotKeepRequests(t *testing.T) {
	for _, row := range []struct {
		name, request string
	}{
		{"without a body", get},
		{"with one that is not read", post("Content-Length: 5", "hello")},
	} {
		t.Run(row.name, func(t *testing.T) {
			var freed atomic.Int32
			h := serve(t, &nethttp.Adapter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				runtime.AddCleanup(r, func(int) { freed.Add(1) }, 0)
				flow := http.NewResponseController(w)
				_ = flow.SetReadDeadline(time.Now().Add(time.Hour))
				_ = flow.SetWriteDeadline(time.Now().Add(time.Hour))
				_, _ = io.WriteString(w, "hello")
			})}, patience, nil)
			const n = 10
			c := h.dial()
			for range n {
				c.send(row.request)
				_, err := c.answer("GET")
				require.NoError(t, err)
			}
			_ = c.Close()
			require.NoError(t, h.end())
			h.until("the requests are the collector's", func() bool {
				runtime.GC()
				return freed.Load() >= n-2 // one may be in a register or a pool
			})
		})
	}
}
