package nethttp_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is flushed arrives before the handler returns, and so does an interim response.
func TestFlush(t *testing.T) {
	compare(t, func(s *scene) {
		next := make(chan struct{})
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(103)
			await(next)
			for range 3 {
				s.write(w, "hello")
				w.(http.Flusher).Flush()
				await(next)
			}
		})
		c := s.dial()
		c.send(get)
		s.hear(c, "GET")
		next <- struct{}{}
		_, err := c.lines()
		require.NoError(s, err)
		for range 3 {
			chunk, err := io.ReadAll(io.LimitReader(c.in, int64(len("5\r\nhello\r\n"))))
			require.NoError(s, err)
			s.note("%q", chunk)
			next <- struct{}{}
		}
		rest, err := c.lines()
		require.NoError(s, err)
		s.note("%q", rest)
	})
}

// stride is 1, or 3 with TLS, where a connection costs more.
func (s *scene) stride() int {
	if s.secure {
		return 3
	}
	return 1
}

var vanishing = map[string]string{
	"length": raw("POST / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello"),
	"chunks": raw("POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\nTrailer: Sum\n\n3;a\nhel\n2\nlo\n0\nSum: 1\n\n"),
}

var (
	errHandler = errors.New("of the handler")
	past       = time.Unix(1, 0)
)
