package nethttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/tier"
)

// A client that has its answer may ask again: its handler is counted no more.
func TestAnAnsweredRequestIsNotCounted(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	h := serve(t, &nethttp.Adapter{Most: 1, Handler: nothing}, patience, nil)
	c := h.dial()
	for range tier.Choose(2000, 4000, 20_000) { // dozens of them were refused when it was counted until later
		require.NoError(t, c.tcp.SetDeadline(time.Now().Add(patience)))
		c.send(get)
		a, err := c.answer("GET")
		require.NoError(t, err)
		require.Equal(t, 200, a.status)
	}
	require.NoError(t, h.end())
}

// A request beyond Most is refused, and told when to come again. A handler counts until it has returned, also without a
// client.
func TestRequestsBeyondMost(t *testing.T) {
	begun, gone, next := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := serve(t, &nethttp.Adapter{Most: 1, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			close(begun)
			<-r.Context().Done()
			close(gone)
			<-next
		}
	})}, patience, nil)
	first, second := h.dial(), h.dial()
	ask := func() *answer {
		second.send(get)
		a, err := second.answer("GET")
		require.NoError(t, err)
		return a
	}
	first.send("GET /wait HTTP/1.1\nHost: a\n\n")
	<-begun
	a := ask()
	require.Equal(t, 503, a.status)
	require.Equal(t, "1", a.get("Retry-After"))
	first.reset()
	<-gone
	require.Equal(t, 503, ask().status)
	close(next)
	h.until("its place is free", func() bool { return ask().status == 200 })
	require.NoError(t, h.end())
}
