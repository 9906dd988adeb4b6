package httpd_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/tier"
)

// A client that takes 40 kB a second is slow but not stuck. Linux reports room in a send buffer of megabytes so late
// that it looked as if it were, and it was cut off. One that takes nothing is.
func TestASlowReaderIsNotCutOff(t *testing.T) {
	tier.Need(t, tier.Full, "takes 8 s, and its client has to keep its pace")
	const write = 2 * time.Second
	large := make([]byte, 16<<20)
	at := serve(t, &httpd.Server{
		Timeouts: httpd.Timeouts{Write: write},
		Handler:  func(w *httpd.Response, _ *httpd.Request) act.Action { w.SetBody(large); return nil },
	})
	visit := func() *net.TCPConn {
		c, err := net.Dial("tcp", at)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		// The system announces room in a large buffer only when a good part of it is free.
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(32<<10))
		_, err = io.WriteString(c, raw(get+"\n"))
		require.NoError(t, err)
		require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
		return c.(*net.TCPConn)
	}
	slow, stuck := visit(), visit()
	piece := make([]byte, 4000)
	for begun := time.Now(); time.Since(begun) < 4*write; time.Sleep(100 * time.Millisecond) {
		_, err := io.ReadFull(slow, piece)
		require.NoError(t, err, "after %v", time.Since(begun))
	}
	n, err := io.Copy(io.Discard, stuck)
	require.Error(t, err, "reset, after %d bytes", n)
}
