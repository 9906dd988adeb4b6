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

// What is flushed arrives before the handler returns, and so does an interim response.
func TestFlush(t *testing.T) {
	for _, text := range []string{"hello", strings.Repeat("hello", 4000)} {
		compare(t, func(s *scene) { flush(s, text) })
	}
}

func flush(s *scene, text string) {
	next := make(chan struct{})
	s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(103)
		await(next)
		for range 3 {
			s.write(w, text)
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
		for left := len(text); left > 0; { // whole chunks
			size := 0
			_, err := fmt.Fscanf(c.in, "%x\r\n", &size)
			require.NoError(s, err)
			chunk, err := io.ReadAll(io.LimitReader(c.in, int64(size)+2))
			require.NoError(s, err)
			require.Equal(s, text[len(text)-left:][:size]+"\r\n", string(chunk))
			left -= size
		}
		next <- struct{}{}
	}
	rest, err := c.lines()
	require.NoError(s, err)
	s.note("%q", rest)
}

// A client that waits for 100 before it sends the body.
func TestExpectations(t *testing.T) {
	for _, steps := range []string{"read 10; write hello", "write no", "status 100; read 10"} {
		compare(t, func(s *scene) {
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) { does(steps)(s, w, r) })
			c := s.dial()
			c.send(post("Content-Length: 5\nExpect: 100-continue", ""))
			if a := s.hear(c, "POST"); a != nil && a.status == 100 {
				c.send("hello")
				s.hear(c, "POST")
			}
			s.curtain()
			c.send(again)
			s.hear(c, "GET")
		})
	}
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

// framed are requests with a body of n bytes, with a length and in chunks.
func framed(n int) map[string]string {
	text := strings.Repeat("0123456789abcdef", n/16+1)[:n]
	return map[string]string{
		"length": post(fmt.Sprint("Content-Length: ", n), text),
		"chunks": post("Transfer-Encoding: chunked", fmt.Sprintf("%x\n%s\n0\n\n", n, text)),
	}
}

// What is kept of a request after its handler has returned is of no use.
func TestABodyThatIsReadAfterItsHandler(t *testing.T) {
	compare(t, func(s *scene) {
		kept := make(chan io.ReadCloser, 1)
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) { kept <- r.Body })
		for _, name := range []string{"length", "chunks"} {
			c := s.dial()
			c.send(framed(5)[name])
			s.hear(c, "POST")
			c.send(again)
			s.hear(c, "GET") // all of the first is over
			body := <-kept
			n, err := body.Read(make([]byte, 10))
			s.note("%d %v %v", n, named(err), body.Close())
		}
	})
}

// HEAD is answered at Flush, and the handler goes on.
func TestHEADIsAnsweredAtFlush(t *testing.T) {
	for _, begin := range []string{"set A: b; flush", "write he; flush", "set Content-Length: 7; flush"} {
		compare(t, func(s *scene) {
			next := make(chan struct{})
			s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
				does(begin)(s, w, r)
				await(next)
				s.say("%v", r.Context().Err())
				s.write(w, "hello")
			})
			c := s.dial()
			c.send("HEAD / HTTP/1.1\nHost: a\n\n")
			s.hear(c, "HEAD")
			close(next)
			c.send(again)
			s.hear(c, "GET")
		})
	}
}
