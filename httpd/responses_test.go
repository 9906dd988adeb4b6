package httpd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
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
	const large = 200 << 10
	file := fileOf(t, large)
	for name, row := range map[string]struct {
		answer                 httpd.Handler
		get, head, old, keeper string // HTTP/1.1 GET and HEAD; 1.0 without and with keep-alive
	}{
		"nothing": {func(*httpd.Response, *httpd.Request) act.Action { return nil },
			"200 length 0", "200 length 0", "200! length 0", "200 length 0 keep-alive"},
		"gathered": {func(w *httpd.Response, _ *httpd.Request) act.Action { _, _ = w.WriteString("hello"); return nil },
			"200 length 5: hello", "200 length 5", "200! length 5: hello", "200 length 5 keep-alive: hello"},
		"flushed": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString("hel")
			_ = w.Flush()
			_, _ = w.WriteString("lo")
			return nil
		}, "200 chunked: hello", "200 chunked", "200! up to the end: hello", "200! up to the end: hello"},
		"whole": {func(w *httpd.Response, _ *httpd.Request) act.Action { w.SetBody([]byte("hello")); return nil },
			"200 length 5: hello", "200 length 5", "200! length 5: hello", "200 length 5 keep-alive: hello"},
		"streamed": {func(w *httpd.Response, _ *httpd.Request) act.Action { return filling(w, large) },
			"200 chunked: 204800 bytes", "200 chunked", "200! up to the end: 204800 bytes", "200! up to the end: 204800 bytes"},
		"a file": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.SetLength(large)
			return sending(w, file, large)
		}, "200 length 204800: 204800 bytes", "200 length 204800", "200! length 204800: 204800 bytes", "200 length 204800 keep-alive: 204800 bytes"},
		"204": {func(w *httpd.Response, _ *httpd.Request) act.Action { w.SetStatus(204); return nil },
			"204", "204", "204!", "204 keep-alive"},
		"304, flushed": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.SetStatus(304)
			w.SetLength(3)
			w.Add("ETag", `"a"`)
			_ = w.Flush()
			return nil
		}, "304", "304", "304!", "304 keep-alive"},
		"an error": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString("never seen")
			w.Error(404)
			return nil
		}, "404 length 14: 404 Not Found\n", "404 length 14", "404! length 14: 404 Not Found\n", "404 length 14 keep-alive: 404 Not Found\n"},
		"trailers": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			_, _ = w.WriteString("hello")
			w.AddTrailer("Sum", "1")
			return nil
		}, "200 chunked: hello +Sum=1", "200 chunked", "200! length 5: hello", "200 length 5 keep-alive: hello"},
		"trailers of what was announced": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.SetLength(5)
			w.AddTrailer("Sum", "1")
			_, _ = w.WriteString("hello")
			return nil
		}, "200 length 5: hello", "200 length 5", "200! length 5: hello", "200 length 5 keep-alive: hello"},
		"the last": {func(w *httpd.Response, _ *httpd.Request) act.Action {
			w.Close()
			_, _ = w.WriteString("hello")
			return nil
		},
			"200! length 5: hello", "200! length 5", "200! length 5: hello", "200! length 5: hello"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			web := &httpd.Server{Handler: row.answer}
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
					for _, over := range []func(*wire) monitor.Stream{plainStream, fileStream} {
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

// RFC 9110 6.6.1: the date is that of the second, also when it is not made anew for every answer.
func TestTheDateIsThatOfTheSecond(t *testing.T) {
	d := newDriver(t)
	d.now = 900 * time.Millisecond
	c := d.dial(&httpd.Server{Handler: hello}, listener.Limits{})
	for range 100 {
		c.send(raw(get + "\n"))
		all, err := understand(c.received(), false)
		require.NoError(t, err)
		require.Equal(t, d.Wall().Format(httpd.TimeFormat), all[0].get("Date"))
		d.pass(70 * time.Millisecond)
	}
}
