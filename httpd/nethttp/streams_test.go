package nethttp_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is flushed arrives before the handler returns.
func TestFlush(t *testing.T) {
	for name, flush := range map[string]func(http.ResponseWriter){
		"Flusher":            func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"ResponseController": func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
	} {
		for _, length := range []string{"", "15"} {
			t.Run(name+length, func(t *testing.T) {
				compare(t, func(s *scene) {
					next := make(chan struct{})
					s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
						if length != "" {
							w.Header().Set("Content-Length", length)
						}
						for range 3 {
							s.write(w, "hello")
							flush(w)
							await(next)
						}
					})
					c := s.dial()
					c.send(get)
					status, err := c.line()
					require.NoError(s, err)
					head, err := c.lines()
					require.NoError(s, err)
					s.note("%s %d", status, len(head))
					for range 3 {
						if length == "" {
							size, err := c.line()
							require.NoError(s, err)
							s.note("%s", size)
						}
						var p [5]byte
						_, err := io.ReadFull(c.in, p[:])
						require.NoError(s, err)
						s.note("%s", p[:])
						if length == "" {
							_, err := c.line()
							require.NoError(s, err)
						}
						next <- struct{}{}
					}
					if length == "" {
						rest, err := c.lines()
						require.NoError(s, err)
						s.note("%q", rest)
					}
					_, _ = io.WriteString(c.Conn, again)
				})
			})
		}
	}
}

// An interim response and what follows arrive while the handler waits.
func TestAnInterimAnswerIsNotHeldBack(t *testing.T) {
	compare(t, func(s *scene) {
		next := make(chan struct{})
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			await(next)
			w.WriteHeader(204)
		})
		c := s.dial()
		c.send(get)
		s.hear(c, "GET")
		close(next)
		s.hear(c, "GET")
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
