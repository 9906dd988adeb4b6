package nethttp_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
)

// The body of a request is lent for a turn. A goroutine that a handler has left behind reads nothing of it later, however
// the handler has ended.
func TestInlineBodiesEndWithTheirHandlers(t *testing.T) {
	for _, failure := range []any{nil, http.ErrAbortHandler, "a failure"} {
		kept := make(chan io.Reader, 1)
		h := serve(t, &nethttp.Adapter{Inline: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			kept <- r.Body
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
