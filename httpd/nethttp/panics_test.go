package nethttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged waits until the log has all these words, and returns it.
func (s *scene) logged(words ...string) (text string) {
	s.Helper()
	defer func() {
		if s.Failed() {
			s.Logf("logged:\n%s", text)
		}
	}()
	s.until("a line in the log", func() bool {
		text += s.log.take()
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
	return text
}

// What the log says of a handler that panics.
func TestPanics(t *testing.T) {
	var table map[string]int
	for _, panicking := range []struct {
		word   string // in the log; "": nothing is
		panics func()
	}{
		{"", func() { panic(http.ErrAbortHandler) }},
		{"of the handler", func() { panic(errors.New("of the handler")) }},
		{"nil", func() { panic(nil) }},
		{"of a handler", func() { panic("of a handler") }},
		{"nil map", func() { table["a"] = 1 }},
		{"of a handler", func() { panic(fmt.Errorf("of a handler: %w", http.ErrAbortHandler)) }},
		{"panic: runtime.Goexit", runtime.Goexit},
	} {
		for _, before := range []string{"", "write hello", "write hello; flush"} {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
					does(before)(s, w, r)
					panicking.panics()
				})
				s.log.take()
				s.talk(framed(5000)["length"], false)
				s.curtain()
				switch word := panicking.word; {
				case word == "":
					s.note("logged: %s", s.log.take())
				case !strings.Contains(word, "Goexit"):
					s.logged(word, "nethttp_test.TestPanics") // the stack
				case s.name != "net/http": // which knows nothing of that
					s.logged(word)
				}
			})
		}
	}
}

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
