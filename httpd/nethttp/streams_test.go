package nethttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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

// A client that leaves while the answer streams.
func TestAClientThatLeavesWhileTheAnswerStreams(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"FIN": func(c *client) { _ = c.Close() },
		"RST": func(c *client) { c.reset() },
	} {
		for _, much := range []int{100, 100000} {
			t.Run(fmt.Sprint(name, much), func(t *testing.T) {
				compare(t, func(s *scene) {
					text := strings.Repeat("x", much)
					s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
						for {
							_, err := io.WriteString(w, text)
							if err == nil {
								err = http.NewResponseController(w).Flush()
							}
							if err != nil {
								break
							}
						}
						s.say("an error")
						_, _ = await(r.Context().Done())
						s.say("%v", r.Context().Err())
						_, err := io.WriteString(w, strings.Repeat("x", 10000))
						s.say("and again: %t", err != nil)
					})
					c := s.dial()
					c.send(get)
					_, err := io.ReadFull(c.in, make([]byte, 200))
					require.NoError(s, err)
					leave(c)
				})
			})
		}
	}
}

// A client that does not read the answer, and then leaves.
func TestAnAnswerThatIsNotRead(t *testing.T) {
	compare(t, func(s *scene) {
		begun := make(chan struct{}, 1)
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			p := make([]byte, 1<<16)
			begun <- struct{}{}
			for range 1000 { // 64 MB: more than the buffers take
				if _, err := w.Write(p); err != nil {
					s.say("an error")
					return
				}
			}
			s.say("no error")
		})
		c := s.dial()
		require.NoError(s, c.tcp.SetReadBuffer(4096))
		c.send(get)
		_, _ = await(begun)
		c.reset()
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

// Each byte of a request is sent, and then the client leaves. Handlers return, and the server goes on.
func TestAClientThatVanishesAtEachByte(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"FIN": func(c *client) { _ = c.Close() },
		"RST": func(c *client) { c.reset() },
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = io.WriteString(w, "hello")
				})
				for _, request := range vanishing {
					for n := 0; n <= len(request); n += s.stride() {
						c := s.dial()
						_, _ = io.WriteString(c.Conn, request[:n])
						leave(c)
					}
				}
				s.talk(get, false)
			})
		})
	}
}

// Many clients at once, each with many requests.
func TestManyClients(t *testing.T) {
	compare(t, func(s *scene) {
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				s.say("%v", err)
			}
			if r.URL.Query().Has("large") {
				_, _ = io.WriteString(w, strings.Repeat("x", 9000))
			}
			_, _ = fmt.Fprintf(w, "%s %s %s", r.URL.Path, r.Header.Get("A"), body)
		})
		var all sync.WaitGroup
		for i := range 20 {
			c := s.dial()
			all.Go(func() {
				defer c.Close()
				for k := range 20 {
					path, body := fmt.Sprintf("/%d/%d", i, k), strings.Repeat("y", i*k*10)
					query, large := "", ""
					if k%3 == 0 {
						query, large = "?large", strings.Repeat("x", 9000)
					}
					c.send(fmt.Sprintf("POST %s%s HTTP/1.1\nHost: a\nA: %d\nContent-Length: %d\n\n%s", path, query, k, len(body), body))
					a, err := c.answer("POST")
					if err != nil {
						s.say("%v", err)
						return
					}
					if string(a.body) != large+fmt.Sprintf("%s %d %s", path, k, body) {
						s.say("%d %d: %s", i, k, digest(a.body))
					}
				}
			})
		}
		all.Wait()
	})
}

var (
	errHandler = errors.New("of the handler")
	past       = time.Unix(1, 0)
)
