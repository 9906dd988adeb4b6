package nethttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Contexts of requests.
func TestContexts(t *testing.T) {
	// waiting is a handler that says when it waits for the end of its context, which it reports.
	waiting := func(s *scene, begun chan<- struct{}, before func(w http.ResponseWriter, r *http.Request)) {
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			if before != nil {
				before(w, r)
			}
			_, deadline := r.Context().Deadline()
			s.say("%v, a deadline: %t", r.Context().Err(), deadline)
			begun <- struct{}{}
			_, _ = await(r.Context().Done())
			s.say("%v, cause %v", r.Context().Err(), context.Cause(r.Context()))
		})
	}
	leave := map[string]func(c *client){
		"FIN":  func(c *client) { _ = c.Close() },
		"RST":  func(c *client) { c.reset() },
		"half": func(c *client) { c.closeWrite() },
	}
	for name, leave := range leave {
		t.Run(name+" while the handler works", func(t *testing.T) {
			compare(t, func(s *scene) {
				begun := make(chan struct{}, 1)
				waiting(s, begun, nil)
				c := s.dial()
				c.send(get)
				_, ok := await(begun)
				require.True(s, ok)
				leave(c)
			})
		})
		t.Run(name+" behind a body", func(t *testing.T) {
			compare(t, func(s *scene) {
				begun := make(chan struct{}, 1)
				waiting(s, begun, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
				c := s.dial()
				c.send(framed(5000)["chunks"])
				_, ok := await(begun)
				require.True(s, ok)
				leave(c)
			})
		})
	}
	t.Run("it ends with the handler", func(t *testing.T) {
		compare(t, func(s *scene) {
			contexts := make(chan context.Context, 2)
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) { contexts <- r.Context() })
			c := s.dial()
			for range 2 {
				c.send(get)
				s.hear(c, "GET")
				ctx := <-contexts
				_, _ = await(ctx.Done())
				s.note("%v, cause %v", ctx.Err(), context.Cause(ctx))
			}
		})
	})
	t.Run("a further request does not end it", func(t *testing.T) {
		compare(t, func(s *scene) {
			begun, next := make(chan struct{}, 1), make(chan struct{})
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				begun <- struct{}{}
				await(next)
				s.say("%v", r.Context().Err())
			})
			c := s.dial()
			c.send(get)
			_, _ = await(begun)
			_, _ = io.WriteString(c.Conn, again)
			close(next)
			s.hear(c, "GET")
			s.hear(c, "GET")
		})
	})
	t.Run("CloseNotify", func(t *testing.T) {
		compare(t, func(s *scene) {
			begun := make(chan struct{}, 1)
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				//lint:ignore SA1019 deprecated, and used
				n, is := w.(http.CloseNotifier)
				begun <- struct{}{}
				if !is {
					s.say("none")
					return
				}
				_, ok := await(n.CloseNotify())
				s.say("%t", ok)
			})
			c := s.dial()
			c.send(get)
			_, _ = await(begun)
			_ = c.Close()
		})
	})
}

// Each byte of a request's body is sent, and then the client ends its side. What the handler has read, and what the client
// gets, is the same.
func TestAClientThatEndsItsSideAtEachByte(t *testing.T) {
	for name, request := range vanishing {
		t.Run(name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
					text, err := io.ReadAll(r.Body)
					s.say("read %q, whole: %t", text, err == nil)
					s.header("trailer", r.Trailer)
					w.Header().Set("Connection", "close")
					s.write(w, "hello")
				})
				for n := strings.Index(request, "\r\n\r\n") + 4; n <= len(request); n += s.stride() {
					s.part(fmt.Sprintf("%q", request[:n]))
					c := s.dial()
					_, _ = io.WriteString(c.Conn, request[:n])
					c.closeWrite()
					for s.hear(c, "POST") != nil {
					}
					_ = c.Close()
					s.curtain()
				}
			})
		})
	}
}
