package nethttp_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A handler may read what its client has set before the request, and the client what the handler has set before its
// answer, without a lock, as with net/http: the race detector watches.
func TestRequestsAndAnswersOrderWhatBothSidesDo(t *testing.T) {
	for _, w := range worlds {
		w.compare(t, func(s *scene) {
			for name, answer := range map[string]http.HandlerFunc{
				"short": func(w http.ResponseWriter, r *http.Request) { s.write(w, "hello") },
				"body":  func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) },
				"long":  func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 1<<18)) },
				"file":  func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "race_test.go") },
				"hijack": func(w http.ResponseWriter, r *http.Request) {
					if c, _, ok := s.take(w); ok {
						defer c.Close()
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
					}
				},
			} {
				set := 0
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
					set++
					answer(w, r)
				})
				c := s.dial()
				set++ // after the locks of dial
				c.send("POST / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello")
				_, err := c.answer("POST")
				set++
				require.NoError(s, err, name)
				require.Equal(s, 3, set, name)
			}
		})
	}
}
