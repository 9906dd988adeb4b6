package nethttp_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
)

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
	})}, patience)
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
