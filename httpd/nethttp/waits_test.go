package nethttp_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/tier"
)

// Handlers that wait for an event, before their answers or in the middle of them, take no turns of the scheduler. What
// ten thousand of them cost is in e2e.
func TestHandlersThatWaitTakeNoTurns(t *testing.T) {
	event := make(chan struct{})
	h := serve(t, &nethttp.Adapter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/poll":
			<-event
		case "/events":
			_, _ = io.WriteString(w, "hello, ")
			w.(http.Flusher).Flush()
			<-event
		}
		_, _ = io.WriteString(w, "event")
	})}, patience, nil)
	c := h.dial()
	ask := func() {
		c.send(get)
		a, err := c.answer("GET")
		require.NoError(t, err)
		require.Equal(t, "event", string(a.body))
	}
	turnsOf := func(f func()) int64 {
		before := h.turns.Load()
		f()
		return h.turns.Load() - before
	}
	hundred := func() {
		for range 100 {
			ask()
		}
	}
	alone := turnsOf(hundred)
	n := tier.Choose(100, 300, 1000)
	clients := make([]*client, n)
	for i := range clients {
		clients[i] = h.dial()
		clients[i].send("GET " + []string{"/poll", "/events"}[i%2] + " HTTP/1.1\nHost: a\n\n")
	}
	h.until("all of them wait", func() bool { return h.running.Load() == int32(n) })
	for i := 1; i < n; i += 2 {
		_, err := clients[i].in.Peek(1) // what they have flushed has been sent
		require.NoError(t, err)
	}
	ask() // and the turns that followed are over
	require.LessOrEqual(t, turnsOf(hundred), 2*alone)
	close(event)
	for i, c := range clients {
		a, err := c.answer("GET")
		require.NoError(t, err)
		require.Equal(t, []string{"event", "hello, event"}[i%2], string(a.body))
		_ = c.Close()
	}
	require.NoError(t, h.end())
}
