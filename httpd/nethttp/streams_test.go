package nethttp_test

import (
	"io"
	"net/http"
	"testing"

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
