package nethttp_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/service"
)

// dialler starts a server on a stepped scheduler, whose clients begin with a request.
func dialler(t *testing.T, h http.HandlerFunc) (l *servertest.Stepped, dial func(request string) net.Conn) {
	a := &nethttp.Adapter{Most: 1, Handler: h}
	l = servertest.New(t, act.Config{Clock: &servertest.Clock{}})
	v := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: a.Serve, Timeouts: untimed}).Serve}
	require.NoError(t, v.Setup(l.S))
	return l, func(request string) net.Conn {
		c := servertest.Dial(t, v.Addr())
		servertest.Send(t, c, raw(request))
		return c
	}
}

// A body that is on its way to a handler counts for the budget of its scheduler, and not any longer.
func TestABodyOnItsWayTakesMemory(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	l, dial := dialler(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 1))
		if r.ContentLength > 0 {
			close(begun)
			<-release
		}
		_, _ = io.ReadAll(r.Body)
	})
	handled := func(n uint64) func() bool {
		return func() bool {
			counts := servertest.CountsOf(l.S)
			return counts["http_handlers_total"] == n && counts["http_handlers"] == 0 && counts["http_responses_2xx_total"] == n
		}
	}
	total := func() int { return budget.Of(l.S).Total() }
	c := dial(get)
	l.Until("it is answered", handled(1))
	before := total()
	servertest.Send(t, c, raw(post("Content-Length: 8", "1234567")))
	l.Until("there is more than the handler reads", func() bool { return total() > before })
	<-begun
	close(release)
	servertest.Send(t, c, "8")
	l.Until("it is answered", handled(2))
	require.Equal(t, before, total())
}

// A request says that its handler runs, and whether that waits for the client.
func TestWhatAHandlerOnAGoroutineWaitsFor(t *testing.T) {
	release := make(chan struct{})
	l, dial := dialler(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-release
	})
	counts := func() map[string]uint64 { return servertest.CountsOf(l.S) }
	c := dial(post("Content-Length: 2", "1"))
	from := c.LocalAddr().String()
	accepts, handler := "connections to "+c.RemoteAddr().String(), "its http.Handler, on a goroutine"
	l.Until("its body is awaited", func() bool {
		said := servertest.Said(l.S)
		return len(said) == 4 && said[1] == "more of the request's body" && said[2] == handler && said[3] == "input from "+from
	})
	servertest.Send(t, c, "2")
	l.UntilSaid(accepts, handler, "the end of "+from)
	require.EqualValues(t, 1, counts()["http_handlers"])
	dial(with("Connection: close"))
	l.Until("one is refused", func() bool { return counts()["http_handlers_refused_total"] == 1 })
	l.S.Clock().(*servertest.Clock).Pass(time.Second)
	l.Until("a line says so", func() bool {
		return l.Logs.FilterMessageSnippet("requests were refused").FilterLevelExact(zap.InfoLevel).Len() == 1
	})

	servertest.Reset(t, c)
	l.Until("its client has gone", func() bool { return !slices.Contains(servertest.Said(l.S), "the end of "+from) })
	require.Equal(t, []string{accepts, "its handler to return"}, servertest.Said(l.S), "an end waits for it")
	close(release)
	l.UntilSaid(accepts)
	require.Zero(t, counts()["http_handlers"])
	require.EqualValues(t, 1, counts()["http_handlers_total"])
}
