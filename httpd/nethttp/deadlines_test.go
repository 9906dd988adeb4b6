package nethttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var past = time.Unix(1, 0)

// Deadlines of the ResponseController.
func TestDeadlines(t *testing.T) {
	t.Run("read, past", func(t *testing.T) {
		compare(t, func(s *scene) {
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				s.say("%v", http.NewResponseController(w).SetReadDeadline(past))
				s.read(r.Body, 5)
				s.read(r.Body, 5)
				s.write(w, "hello")
			})
			c := s.dial()
			c.send(post("Content-Length: 5", ""))
			s.hear(c, "POST")
			s.curtain()
			c.send("hello" + again)
			s.hear(c, "GET")
		})
	})
	t.Run("read, while it waits", func(t *testing.T) {
		compare(t, func(s *scene) {
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				s.read(r.Body, 2) // otherwise the deadline may pass before the read begins
				control := http.NewResponseController(w)
				s.say("%v", control.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
				s.read(r.Body, 3)
				s.write(w, "hello")
			})
			c := s.dial()
			c.send(post("Content-Length: 5", "he"))
			s.hear(c, "POST")
		})
	})
	t.Run("write, past", func(t *testing.T) {
		compare(t, func(s *scene) {
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				control := http.NewResponseController(w)
				s.say("%v", control.SetWriteDeadline(past))
				n, err := io.WriteString(w, strings.Repeat("x", 100000))
				s.say("%t %v", n < 100000, named(err))
				s.say("%v", named(control.Flush()))
			})
			c := s.dial()
			c.send(get)
			s.hear(c, "GET")
		})
	})
	t.Run("write, while the client does not read", func(t *testing.T) {
		compare(t, func(s *scene) {
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				control := http.NewResponseController(w)
				s.say("%v", control.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
				p := make([]byte, 1<<16)
				for {
					if _, err := w.Write(p); err != nil {
						s.say("%v", named(err))
						return
					}
				}
			})
			calls := s.calls.Load()
			c := s.dial()
			c.send(get)
			s.until("the handler has returned", func() bool { return s.calls.Load() > calls && s.running.Load() == 0 })
			s.until("the connection is over", func() bool {
				_, err := c.Write([]byte("x"))
				return gone(err)
			})
			require.NotContains(s, s.log.take(), "missing", "that is no failure of the handler")
		})
	})
	t.Run("write, not for the next request", func(t *testing.T) {
		compare(t, func(s *scene) {
			first := true
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				if first {
					first = false
					s.say("%v", http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)))
				}
				s.write(w, "hello")
			})
			s.talk(get, false)
		})
	})
}
