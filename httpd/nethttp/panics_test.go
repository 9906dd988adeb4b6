package nethttp_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
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

// What the client gets of a handler that panics, and what the log says.
func TestPanics(t *testing.T) {
	var table map[string]int
	panicking := map[string]func(){
		"ErrAbortHandler":           func() { panic(http.ErrAbortHandler) },
		"an error":                  func() { panic(errHandler) },
		"nil":                       func() { panic(nil) },
		"a text":                    func() { panic("of a handler") },
		"an error of the runtime":   func() { table["a"] = 1 },
		"an error that wraps Abort": func() { panic(fmt.Errorf("of a handler: %w", http.ErrAbortHandler)) },
		"Goexit":                    runtime.Goexit,
	}
	logged := map[string]string{"an error": "of the handler", "nil": "nil", "a text": "of a handler", "an error of the runtime": "nil map",
		"an error that wraps Abort": "of a handler"}
	before := []row{
		{name: "at once", handler: func(*scene, http.ResponseWriter, *http.Request) {}},
		{name: "after a write", handler: fields()},
		{name: "after a flush", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, "hello")
			w.(http.Flusher).Flush()
		}},
		{name: "after much", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.write(w, strings.Repeat("x", 100000))
		}},
		{name: "after an answer", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(204)
			w.(http.Flusher).Flush()
		}},
	}
	for what, panics := range panicking {
		t.Run(what, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.part("log")
				for _, before := range before {
					for _, request := range []string{get, framed(5000)["length"]} {
						s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
							before.handler(s, w, r)
							panics()
						})
						s.log.take()
						method, _, _ := strings.Cut(request, " ")
						s.part(before.name + ", " + method)
						s.talk(request, false)
						s.curtain()
						if word := logged[what]; word != "" {
							s.logged(word, "nethttp_test.TestPanics") // the stack
						} else if text := s.log.take(); text != "" && what != "Goexit" { // net/http knows nothing of that
							s.note("logged: %s", text)
						}
					}
				}
			})
		})
	}
}

// A handler that is called wrongly is logged, and its answer is whole.
func TestMistakesAreLogged(t *testing.T) {
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		logged  []string
	}{
		"a second status": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
		}, []string{"superfluous", "panics_test.go"}},
		"a length that is none": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "abc")
			_, _ = io.WriteString(w, "hello")
		}, []string{"Content-Length"}},
		"a write on a hijacked connection": {func(w http.ResponseWriter, r *http.Request) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = w.Write([]byte("hello"))
				_ = c.Close()
			}
		}, []string{"on hijacked connection", "panics_test.go"}},
		"a status on a hijacked connection": {func(w http.ResponseWriter, r *http.Request) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				w.WriteHeader(200)
				_ = c.Close()
			}
		}, []string{"on hijacked connection", "panics_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handle(row.handler)
				s.log.take()
				s.talk(get, false)
				s.logged(row.logged...)
			})
		})
	}
}
