package nethttp_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/service"
)

// A request says that its handler runs, and whether that waits for the client.
func TestWhatAHandlerOnAGoroutineWaitsFor(t *testing.T) {
	release := make(chan struct{})
	a := &nethttp.Adapter{Most: 1, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-release
	})}
	l := servertest.New(t, act.Config{})
	v := &service.TCP{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: a.Serve, Timeouts: untimed}).Serve}
	require.NoError(t, v.Setup(l.S))
	dial := func(request string) net.Conn {
		c, err := net.Dial("tcp", v.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, request)
		require.NoError(t, err)
		return c
	}
	counts := func() map[string]uint64 { return servertest.CountsOf(l.S) }
	accepts, handler := "connections to "+v.Addr().String(), "its http.Handler, on a goroutine"

	c := dial("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n1")
	from := c.LocalAddr().String()
	l.Until("its body is awaited", func() bool {
		said := servertest.Said(l.S)
		return len(said) == 4 && said[1] == "more of the request's body" && said[2] == handler && said[3] == "input from "+from
	})
	servertest.Send(t, c, "2")
	l.UntilSaid(accepts, handler, "the end of "+from)
	require.EqualValues(t, 1, counts()["http_handlers"])
	dial("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	l.Until("one is refused", func() bool { return counts()["http_handlers_refused_total"] == 1 })

	require.NoError(t, c.(*net.TCPConn).SetLinger(0))
	require.NoError(t, c.Close())
	l.Until("its client has gone", func() bool { return !slices.Contains(servertest.Said(l.S), "the end of "+from) })
	require.Equal(t, []string{accepts, "its handler to return"}, servertest.Said(l.S), "an end waits for it")
	close(release)
	l.UntilSaid(accepts)
	require.Zero(t, counts()["http_handlers"])
	require.EqualValues(t, 1, counts()["http_handlers_total"])
}
