package httpd_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/internal/race"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// described is an answer in a line: its status, how it says where it ends, and its content.
func described(a answer, q asked) string {
	s := fmt.Sprint(a)
	switch length := a.get("Content-Length"); {
	case length != "":
		s += " length " + length
	case a.get("Transfer-Encoding") != "":
		s += " chunked"
	case a.closes && !q.head && a.status != 204 && a.status != 304:
		s += " up to the end"
	}
	if a.get("Connection") == "keep-alive" {
		s += " keep-alive"
	}
	if a.body != "" {
		s += ": " + shortened(a.body)
	}
	for i := 0; i < len(a.trailer); i += 2 {
		s += fmt.Sprintf(" +%s=%s", a.trailer[i], a.trailer[i+1])
	}
	return s
}

// shortened is a text, or how long it is.
func shortened(text string) string {
	if len(text) > 40 {
		return fmt.Sprintf("%d bytes", len(text))
	}
	return text
}

// filling answers with n bytes, as much at a time as there is room for.
func filling(w *httpd.Response, n int) act.Action {
	content := []byte(strings.Repeat("x", n))
	return act.Func(func(t *act.Task) act.Directive {
		k, err := w.Write(content)
		if content = content[k:]; err != nil {
			return listener.Next(t, err)
		}
		return act.Done
	})
}

// lending answers with n bytes, some of which a Sender sends, if there is one: of a file, if it is not nil.
func lending(w *httpd.Response, f *os.File, n int) act.Action {
	content := []byte(strings.Repeat("x", n))
	pieces := []int{0, 1, 100, 4096, 10_000, n - 20_000} // some are left
	return act.Func(func(t *act.Task) act.Directive {
		for {
			if len(pieces) == 0 {
				k, err := w.Write(content)
				content = content[k:]
				return listener.Next(t, cmp.Or(err, io.EOF))
			}
			var k int
			s, err := w.Lend()
			switch {
			case err == errors.ErrUnsupported:
				pieces = nil
				continue
			case err != nil:
				return listener.Next(t, err)
			case f != nil && len(pieces) == 2:
				var sent int64
				sent, err = s.SendFile(f, int64(n-len(content)), int64(pieces[0]))
				k = int(sent)
			default:
				k, err = s.Write(content[:min(pieces[0], len(content))])
			}
			content = content[k:]
			if pieces[0] -= k; err == monitor.ErrWouldBlock {
				if err := s.Ready(); err != nil {
					return listener.Next(t, err)
				}
				continue
			}
			if err != nil {
				return t.Fail(err)
			}
			pieces = pieces[1:]
		}
	})
}

// sending answers with a file, of which the length must have been announced.
func sending(w *httpd.Response, f *os.File, n int64) act.Action {
	at := int64(0)
	return act.Func(func(t *act.Task) act.Directive {
		k, err := w.SendFile(f, at, n-at)
		if at += k; err != nil || at < n {
			return listener.Next(t, err)
		}
		return act.Done
	})
}

func fileOf(t testing.TB, n int) *os.File {
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(strings.Repeat("x", n)), 0o600))
	f, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// RFC 9112 6 and RFC 9110 6.4, 8.6, 9.3.2: how each way to answer looks to GET and to HEAD, in HTTP/1.1 and in HTTP/1.0
// with and without keep-alive. Each to a client that takes it at once, to one that takes it in small pieces, and over a
// stream that sends files by itself.
func TestFramingOfResponses(t *testing.T) {
	file := fileOf(t, 204800)
	for text, row := range map[string]struct {
		get, head, old, keeper string // HTTP/1.1 GET and HEAD; 1.0 without and with keep-alive
	}{
		"":                        {"200 length 0", "200 length 0", "200! length 0", "200 length 0 keep-alive"},
		"write 5":                 {"200 length 5: zzzzz", "200 length 5", "200! length 5: zzzzz", "200 length 5 keep-alive: zzzzz"},
		"whole 5":                 {"200 length 5: wwwww", "200 length 5", "200! length 5: wwwww", "200 length 5 keep-alive: wwwww"},
		"write 3, flush, write 2": {"200 chunked: zzzzz", "200 chunked", "200! up to the end: zzzzz", "200! up to the end: zzzzz"},
		"fill 204800":             {"200 chunked: 204800 bytes", "200 chunked", "200! up to the end: 204800 bytes", "200! up to the end: 204800 bytes"},
		"a file": {"200 length 204800: 204800 bytes", "200 length 204800", "200! length 204800: 204800 bytes",
			"200 length 204800 keep-alive: 204800 bytes"},
		"lend 204800": {"200 chunked: 204800 bytes", "200 chunked", "200! up to the end: 204800 bytes", "200! up to the end: 204800 bytes"},
		"length 204800, lend 204800": {"200 length 204800: 204800 bytes", "200 length 204800", "200! length 204800: 204800 bytes",
			"200 length 204800 keep-alive: 204800 bytes"},
		"a lent file": {"200 length 204800: 204800 bytes", "200 length 204800", "200! length 204800: 204800 bytes",
			"200 length 204800 keep-alive: 204800 bytes"},
		"status 204":                         {"204", "204", "204!", "204 keep-alive"},
		"status 304, length 3, field, flush": {"304", "304", "304!", "304 keep-alive"},
		"write 5, error 404": {"404 length 14: 404 Not Found\n", "404 length 14", "404! length 14: 404 Not Found\n",
			"404 length 14 keep-alive: 404 Not Found\n"},
		"write 5, trailer":           {"200 chunked: zzzzz +X-T=v", "200 chunked", "200! length 5: zzzzz", "200 length 5 keep-alive: zzzzz"},
		"length 5, trailer, write 5": {"200 length 5: zzzzz", "200 length 5", "200! length 5: zzzzz", "200 length 5 keep-alive: zzzzz"},
		"close, write 5":             {"200! length 5: zzzzz", "200! length 5", "200! length 5: zzzzz", "200! length 5: zzzzz"},
	} {
		t.Run(text, func(t *testing.T) {
			d := newDriver(t)
			web := &httpd.Server{Handler: does(t, text)}
			if text == "a file" {
				web.Handler = func(w *httpd.Response, _ *httpd.Request) act.Action {
					w.SetLength(204800)
					return sending(w, file, 204800)
				}
			}
			if text == "a lent file" {
				web.Handler = func(w *httpd.Response, _ *httpd.Request) act.Action {
					w.SetLength(204800)
					return lending(w, file, 204800)
				}
			}
			for _, ask := range []struct {
				says string
				asked
				want string
			}{
				{get + "\n", asked{}, row.get},
				{"HEAD / HTTP/1.1\nHost: a\n\n", asked{head: true}, row.head},
				{"GET / HTTP/1.0\n\n", asked{old: true}, row.old},
				{"GET / HTTP/1.0\nConnection: keep-alive\n\n", asked{old: true}, row.keeper},
			} {
				want := []string{ask.want}
				if !strings.Contains(ask.want, "!") { // it is asked again
					want = append(want, ask.want)
				}
				for _, piece := range []int{plenty, 100, 5000} {
					if race.Enabled && piece == 100 && strings.HasSuffix(ask.want, " 204800 bytes") {
						continue // thousands of turns, which go test ./... takes without the detector
					}
					for _, over := range []func(*wire) monitor.Stream{plainStream, fileStream, lendStream} {
						c := d.dialOver(web, listener.Limits{}, over)
						c.takes(piece, raw(ask.says+ask.says))
						var got []string
						for _, a := range c.check(t, ask.asked, ask.asked) {
							got = append(got, described(a, ask.asked))
						}
						require.Equal(t, want, got, "%q in pieces of %d", ask.says, piece)
						c.closesInOrder(t)
					}
				}
			}
		})
	}
}

// takes says something and has the client take the answer in pieces.
func (c *client) takes(piece int, says string) {
	c.room = piece
	c.send(says)
	for before := -1; len(c.out) != before; c.d.settle() {
		before = len(c.out)
		c.take(piece - c.room)
	}
	c.room = plenty
}

// A handler that is called cannot wait: there is room for all that it writes, however little the connection may queue.
func TestThereIsRoomUntilTheHandlerReturns(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		d := newDriver(t)
		c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
			if flushed {
				_ = w.Flush()
			}
			for range 100 {
				n, err := w.Write(make([]byte, 10_000))
				require.Equal(t, 10_000, n)
				require.NoError(t, err)
			}
			return nil
		}}, listener.Limits{High: 1000}).send(raw(get + "\n"))
		require.Contains(t, c.received(), map[bool]string{false: "Content-Length: 1000000\r\n", true: "Transfer-Encoding: chunked\r\n"}[flushed])
	}
}

// What a Sender refuses: more than the head says, and everything when the loan has ended. Half a chunk is not an
// answer.
func TestASenderKnowsItsLimits(t *testing.T) {
	d := newDriver(t)
	var s *httpd.Sender
	var written *httpd.Response
	var last *client
	ask := func(handler func(w *httpd.Response, t *act.Task) act.Directive) *client {
		c := d.dialOver(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
			return act.Func(func(t *act.Task) act.Directive { return handler(w, t) })
		}}, listener.Limits{}, lendStream)
		c.room, last = 5000, c
		c.send(raw(get + "\n"))
		return c
	}
	ask(func(w *httpd.Response, _ *act.Task) act.Directive {
		w.SetLength(10)
		s, _ = w.Lend()
		_, err := s.Write(make([]byte, 11))
		require.Equal(t, httpd.ErrLength, err)
		_, err = s.SendFile(nil, 0, 11)
		require.Equal(t, httpd.ErrLength, err)
		_, err = s.Write(make([]byte, 10))
		require.NoError(t, err)
		return act.Done
	}).closesInOrder(t)
	_, err := s.Write([]byte("x"))
	require.Equal(t, net.ErrClosed, err)
	_, err = s.SendFile(nil, 0, 1)
	require.Equal(t, net.ErrClosed, err)

	c := ask(func(w *httpd.Response, _ *act.Task) act.Directive {
		written = w
		s, _ = w.Lend()
		_, err := s.SendFile(nil, 0, 1)
		require.Equal(t, errors.ErrUnsupported, err)
		_, err = s.Write(make([]byte, 10_000))
		require.Equal(t, monitor.ErrWouldBlock, err)
		return act.Done
	})
	require.Equal(t, aborted, c.state)
	require.Positive(t, written.Written())
	require.ErrorContains(t, c.err, "a part of the content is missing")

	c = ask(func(w *httpd.Response, _ *act.Task) act.Directive {
		s, _ = w.Lend()
		_, _ = s.Write(make([]byte, 10_000))
		last.finish(syscall.ECONNRESET)
		return act.Done
	})
	require.Equal(t, syscall.ECONNRESET, c.err, "the client is to blame")
}

// What a connection has taken and holds, as one with TLS may, is sent when there is room: the handler need not write more.
func TestASenderSendsWhatIsHeld(t *testing.T) {
	d, sent := newDriver(t), 0
	c := d.dialOver(&httpd.Server{Handler: func(w *httpd.Response, _ *httpd.Request) act.Action {
		content := make([]byte, 10_000)
		w.SetLength(10_000)
		return act.Func(func(t *act.Task) act.Directive {
			s, _ := w.Lend()
			n, err := s.Write(content)
			sent += n
			if content = content[n:]; err == nil {
				return act.Wait
			}
			return listener.Next(t, s.Ready())
		})
	}}, listener.Limits{}, func(w *wire) monitor.Stream { return &lendWire{fileWire: fileWire{w}, holds: true} })
	c.room = 5000
	c.send(raw(get + "\n"))
	require.Equal(t, 10_000, sent)
	c.take(10_000)
	d.settle()
	require.Greater(t, len(c.out), 10_000)
}

// RFC 9110 6.6.1: the date is that of the second, even when it is not made anew for every answer.
func TestTheDateIsThatOfTheSecond(t *testing.T) {
	d := newDriver(t)
	d.now = 900 * time.Millisecond
	web := &httpd.Server{Handler: hello}
	c, c2 := d.dial(web, listener.Limits{}), d.dial(web, listener.Limits{})
	c2.send(string(http2.AppendSettings([]byte(http2.Preface))))
	for i := range uint32(100) {
		c.send(raw(get + "\n"))
		all, err := understand(c.received(), false)
		require.NoError(t, err)
		require.Equal(t, d.Wall().Format(http.TimeFormat), all[0].get("Date"))
		c2.send(string(http2.AppendHeaders(nil, 2*i+1, []byte("\x82\x86\x84\x41\x01a"), true))) // GET http://a/
		require.Contains(t, c2.received(), all[0].get("Date"))
		d.pass(70 * time.Millisecond)
	}
}

// An action that streams for ever goes on after the head of the answer to HEAD, and is over with its first content.
func TestHEADOfAStream(t *testing.T) {
	d, turns := newDriver(t), 0
	c := d.dial(&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		var tick act.Timer
		turns = 0
		return act.Func(func(t *act.Task) act.Directive {
			if turns++; turns == 1 {
				_ = w.Flush()
			} else {
				_, _ = w.WriteString("tick")
			}
			t.WakeAt(&tick, d.now+time.Second)
			return act.Wait
		})
	}}, listener.Limits{}).send(raw("HEAD / HTTP/1.1\nHost: a\n\n"))
	d.pass(10 * time.Second)
	require.Equal(t, 2, turns)
	c.send(raw("HEAD / HTTP/1.1\nHost: a\n\n"))
	d.pass(10 * time.Second)
	require.Equal(t, 2, turns)
	require.Equal(t, "200 200", statuses(c.check(t, asked{head: true}, asked{head: true})))
}
