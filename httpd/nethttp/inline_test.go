package nethttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
)

// A handler on the scheduler's thread that flushes, or wants the connection in vain, loses nothing of its answer.
func TestInlineKeepsTheAnswer(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 4<<10)
	h := serve(t, &nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flow := http.NewResponseController(w)
		switch r.URL.Path {
		case "/flush":
			_, _ = io.WriteString(w, "hello, ")
			_ = flow.Flush()
			w.Header().Set("Late", "yes")
			_, _ = io.WriteString(w, "world")
		case "/flush-first":
			_ = flow.Flush()
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "hello, world")
		case "/long":
			_, _ = io.WriteString(w, long[:10])
			_ = flow.Flush()
			_, _ = io.WriteString(w, long[10:])
			_ = flow.Flush()
		case "/hijack":
			_, _ = io.WriteString(w, "hello, ")
			_, _, err := flow.Hijack()
			_, _ = io.WriteString(w, "world: "+err.Error())
		}
	})}, patience)
	c := h.dial()
	for path, content := range map[string]string{
		"/flush":       "hello, world",
		"/flush-first": "hello, world",
		"/long":        long,
		"/hijack":      "hello, world: " + http.ErrNotSupported.Error(),
	} {
		for _, method := range []string{"GET", "HEAD"} {
			c.send(method + " " + path + " HTTP/1.1\nHost: a\n\n")
			a, err := c.answer(method)
			require.NoError(t, err, path)
			require.Equal(t, 200, a.status, path)
			require.Empty(t, a.get("Late"), path)
			if method == "GET" {
				require.Equal(t, content, string(a.body), path)
			}
		}
	}
	require.NoError(t, h.end())
}

// The body of a request is lent for a turn. A goroutine that a handler has left behind reads nothing of it later, however
// the handler has ended.
func TestInlineBodiesEndWithTheirHandlers(t *testing.T) {
	for _, failure := range []any{nil, http.ErrAbortHandler, "a failure"} {
		kept := make(chan io.Reader, 1)
		h := serve(t, &nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept <- r.Body
			if failure != nil {
				panic(failure)
			}
		})}, patience)
		c := h.dial()
		c.send(post("Content-Length: 5", "hello"))
		_, _ = c.answer("POST")
		n, err := (<-kept).Read(make([]byte, 5))
		require.Zero(t, n, failure)
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose, failure)
		require.NoError(t, h.end())
	}
}
