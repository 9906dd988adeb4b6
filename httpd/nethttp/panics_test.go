package nethttp_test

import (
	"errors"
	"fmt"
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
		"an error":                  func() { panic(errors.New("of the handler")) },
		"nil":                       func() { panic(nil) },
		"a text":                    func() { panic("of a handler") },
		"an error of the runtime":   func() { table["a"] = 1 },
		"an error that wraps Abort": func() { panic(fmt.Errorf("of a handler: %w", http.ErrAbortHandler)) },
		"Goexit":                    runtime.Goexit,
	}
	logged := map[string]string{"an error": "of the handler", "nil": "nil", "a text": "of a handler", "an error of the runtime": "nil map",
		"an error that wraps Abort": "of a handler", "Goexit": "panic: runtime.Goexit"}
	before := []row{
		{name: "at once", handler: does("")},
		{name: "after a write", handler: does("write hello")},
		{name: "after a flush", handler: does("write hello; flush")},
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
						switch word := logged[what]; {
						case what == "Goexit":
							if s.name != "net/http" { // which knows nothing of that
								s.logged(word)
							}
						case word != "":
							s.logged(word, "nethttp_test.TestPanics") // the stack
						default:
							if text := s.log.take(); text != "" {
								s.note("logged: %s", text)
							}
						}
					}
				}
			})
		})
	}
}
