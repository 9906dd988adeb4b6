package nethttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// What a ResponseWriter can do beyond its interface.
func TestMethodsOfAResponseWriter(t *testing.T) {
	compareAll(t, []row{
		{name: "interfaces", once: true, handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			_, flusher := w.(http.Flusher)
			_, hijacker := w.(http.Hijacker)
			_, from := w.(io.ReaderFrom)
			_, text := w.(io.StringWriter)
			_, pusher := w.(http.Pusher)
			_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
			s.say("%t %t %t %t %t %t", flusher, hijacker, from, text, pusher, unwraps)
			s.say("%v", http.NewResponseController(w).EnableFullDuplex())
		}},
	})
}

// What older handlers have in place of a context, whose end the worlds show.
func TestCloseNotify(t *testing.T) {
	compare(t, func(s *scene) {
		begun := make(chan struct{}, 1)
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			//lint:ignore SA1019 deprecated, and used
			gone := w.(http.CloseNotifier).CloseNotify()
			begun <- struct{}{}
			_, ok := await(gone)
			s.say("%t, cause %v", ok, context.Cause(r.Context()))
		})
		c := s.dial()
		c.send(get)
		_, _ = await(begun)
		_ = c.Close()
	})
}

func TestReadFrom(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(strings.Repeat("0123456789", 20000)), 0o600))
	from := func(s *scene, w http.ResponseWriter, r io.Reader) {
		n, err := w.(io.ReaderFrom).ReadFrom(r)
		s.say("%d %v", n, named(err))
	}
	file := func(s *scene, w http.ResponseWriter, limit int64) {
		f, err := os.Open(name)
		if err != nil {
			s.say("%v", err)
			return
		}
		defer f.Close()
		n, err := io.Copy(w, io.LimitReader(f, limit))
		s.say("%d %v", n, named(err))
	}
	compareAll(t, []row{
		{name: "of a text", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			from(s, w, strings.NewReader("<html>"))
		}},
		{name: "of a reader that fails", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			from(s, w, io.MultiReader(strings.NewReader("hello"), iotest.ErrReader(errors.New("no"))))
		}},
		{name: "behind a write and a status", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(404)
			s.write(w, "<b>")
			from(s, w, strings.NewReader("hello"))
			s.write(w, "</b>")
		}},
		{name: "of a file", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "200000")
			file(s, w, 200000)
		}},
		{name: "of a file between writes", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "150010")
			s.write(w, "<html")
			file(s, w, 150000)
			s.write(w, "/html")
		}},
	})
}
