package nethttp_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/listener"
)

// The body of a request is lent for a turn. A goroutine that a handler has left behind reads nothing of it later and writes
// nothing, however the handler has ended.
func TestInlineBodiesEndWithTheirHandlers(t *testing.T) {
	for _, failure := range []any{nil, http.ErrAbortHandler, "a failure"} {
		kept, answer := make(chan io.Reader, 1), make(chan io.Writer, 1)
		h := serve(t, &nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept <- r.Body
			answer <- w
			if failure != nil {
				panic(failure)
			}
		})}, patience)
		c := h.dial()
		c.send(post("Content-Length: 5", "hello"))
		_, _ = c.answer("POST")
		n, err := (<-kept).Read(make([]byte, 5))
		require.Zero(t, n, failure)
		require.ErrorIs(t, err, http.ErrBodyReadAfterClose, failure)
		_, err = (<-answer).Write(make([]byte, 100_000))
		require.Error(t, err, failure)
		require.NoError(t, h.end())
	}
}

// The files of a form are removed when the handler has returned, however it has ended.
func TestFilesOfAFormAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, failure := range []any{nil, http.ErrAbortHandler} {
		for _, inline := range []bool{true, false} {
			seen := make(chan int, 1)
			h := serve(t, &nethttp.Adapter{Inline: inline, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				err := r.ParseMultipartForm(1)
				files, _ := os.ReadDir(dir)
				if seen <- len(files); failure != nil || err != nil {
					panic(failure)
				}
			})}, patience)
			c := h.dial()
			body := "--x\nContent-Disposition: form-data; name=a; filename=b\n\nfile\n--x--\n"
			c.send(post(fmt.Sprint("Content-Type: multipart/form-data; boundary=x\nContent-Length: ", len(raw(body))), body))
			_, _ = c.answer("POST")
			require.Equal(t, 1, <-seen)
			_ = c.Close()
			require.NoError(t, h.end())
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left, "inline: %t, panic: %v", inline, failure)
		}
	}
}

// The head of an answer with trailers goes out by itself, and may take the room that the answer before has left. Then the
// content waits, and the connection is not aborted.
func TestInlineAnswersWithTrailersWaitForRoom(t *testing.T) {
	for size := range 1000 {
		answers := 0
		m, once := replays(t, listener.Limits{High: 1000}, func(w http.ResponseWriter, r *http.Request) {
			answers++
			w.Header().Set("Trailer", "X-Behind")
			_, _ = w.Write(make([]byte, size))
			w.Header().Set("X-Behind", "1")
		})
		m.slow, m.Says = true, []byte(raw(get+post("Content-Length: 5", "")))
		once()
		m.Says = []byte("hello")
		once()
		require.Equal(t, 2, answers, size)
		require.EqualValues(t, size, m.written)
		require.Greater(t, m.Sent, 2*size)
	}
}

// A file that an inline handler copies has a descriptor until it is sent, or cannot be sent any more.
func TestFilesOfInlineHandlersAreClosed(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("no /proc")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector closes files, too
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o600))
	const size = 64 << 20 // more than sockets take
	require.NoError(t, os.Truncate(file, size))
	opened := func() (n int) {
		all, _ := os.ReadDir("/proc/self/fd")
		for _, fd := range all {
			if path, _ := os.Readlink("/proc/self/fd/" + fd.Name()); path == file {
				n++
			}
		}
		return n
	}
	for _, failure := range []any{nil, http.ErrAbortHandler, "a failure"} {
		h := serve(t, &nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(size))
			w.WriteHeader(http.StatusOK)
			f, err := os.Open(file)
			if err == nil {
				defer f.Close()
				_, err = io.CopyN(w, f, size)
			}
			if failure != nil || err != nil {
				panic(failure)
			}
		})}, patience)
		c := h.dial()
		c.send(get)
		_, err := c.in.Peek(1000)
		if failure == nil {
			require.NoError(t, err)
			require.Equal(t, 1, opened())
		}
		_ = c.Close() // in the middle
		require.NoError(t, h.end())
		require.Zero(t, opened())
	}
}
