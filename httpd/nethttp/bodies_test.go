package nethttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// read reads up to n bytes of a body, and says what it has got.
func (s *scene) read(r io.Reader, n int) {
	p := make([]byte, n)
	k, err := io.ReadFull(r, p)
	s.say("read %s %v", digest(p[:k]), named(err))
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
			_, _ = io.WriteString(c.Conn, again)
			s.hear(c, "GET") // all of the first is over
			body := <-kept
			n, err := body.Read(make([]byte, 10))
			s.note("%d %v %v", n, named(err), body.Close())
		}
	})
}

// limited takes n bytes, and then fails with err.
type limited struct {
	n   int
	err error
}

func (l limited) Write(p []byte) (int, error) {
	if len(p) <= l.n {
		return len(p), nil
	}
	return l.n, l.err
}

// io.Copy has the body write itself.
func TestABodyThatIsCopied(t *testing.T) {
	for _, row := range []row{
		{name: "whole", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			var all bytes.Buffer
			n, err := io.Copy(&all, r.Body)
			s.say("%d %v %s %v", n, err, digest(all.Bytes()), r.Trailer)
			n, err = io.Copy(&all, r.Body)
			s.say("again %d %v", n, err)
			s.read(r.Body, 1)
		}},
		{name: "the writer fails", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(limited{5, http.ErrNoCookie}, r.Body)
			s.say("%d %v", n, err)
		}},
		{name: "the writer takes less", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(limited{n: 5}, r.Body)
			s.say("%d %v", n, err)
		}},
		{name: "the body is closed", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			s.say("%v", r.Body.Close())
			n, err := io.Copy(io.Discard, r.Body)
			s.say("%d %v", n, err)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) { row.handler(s, w, r) })
				for _, text := range []string{framed(1000)["length"],
					post("Transfer-Encoding: chunked\nTrailer: Sum", "a\n0123456789\n0\nSum: 1\n\n")} {
					s.talk(text, false)
				}
			}, row.but...)
		})
	}
}

// What becomes of a connection with a body that is not read: the random handlers have smaller ones.
func TestUnreadBodies(t *testing.T) {
	compare(t, func(s *scene) {
		s.handleFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader("x"))
			s.write(w, strings.Repeat("x", 10000))
		})
		for _, text := range []string{framed(200 << 10)["length"], framed(1 << 20)["length"], framed(1 << 20)["chunks"]} {
			s.part(fmt.Sprint(len(text), " bytes"))
			s.talk(text, true)
			s.curtain()
		}
	})
}

// What reads of a body return.
func TestReadsOfABody(t *testing.T) {
	for _, row := range []row{
		{name: "of nothing", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			n, err := r.Body.Read(nil)
			s.say("%d %v", n, err)
			s.read(r.Body, 10)
			n, err = r.Body.Read(nil)
			s.say("%d %v", n, named(err))
		}},
		{name: "behind a flushed answer", handler: does("write hello; flush; read 10"),
			but: []but{{"", `read "" ErrBodyReadAfterClose`, `read "01234" ErrUnexpectedEOF`, "both ways do not exclude each other"}}},
		{name: "at most 3", handler: func(s *scene, w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 3))
			s.say("%q %v", text, named(err))
			w.WriteHeader(413)
		}, but: []but{{"", "\tConnection: close\n\tContent-Length: 0\nclosed", "\tContent-Length: 0\nlasts",
			"only net/http can know of a MaxBytesReader"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			compare(t, func(s *scene) {
				s.handleFunc(func(w http.ResponseWriter, r *http.Request) { row.handler(s, w, r) })
				for _, name := range []string{"length", "chunks"} {
					if name == "chunks" && row.name == "behind a flushed answer" {
						continue // that is the last one, unless the end of the body has been seen by then
					}
					s.ask(name, framed(5)[name])
				}
				s.ask("no body", get)
			}, row.but...)
		})
	}
}
