package nethttp_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/httpd/nethttp"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/shutdown"
)

// A handler that never returns holds up nobody else and no end, however its client leaves. What it has of its request is
// not that of a later one.
func TestHandlersThatNeverReturn(t *testing.T) {
	const bound = 300 * time.Millisecond
	stuck := map[string]func(c *client){
		"stays":  func(*client) {},
		"closes": func(c *client) { _ = c.Close() },
		"resets": func(c *client) { c.reset() },
	}
	text := func(r *http.Request) string {
		return fmt.Sprint(r.Method, r.URL, r.Host, r.RequestURI, r.Proto, r.Header, r.TransferEncoding, r.Trailer, r.Pattern, r.PathValue("name"))
	}
	type kept struct {
		r           *http.Request
		text        string
		body        []byte
		addr        string
		read, write error
	}
	all, never, done := make(chan *kept, len(stuck)), make(chan struct{}), make(chan *kept, len(stuck))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stuck/{name}", func(w http.ResponseWriter, r *http.Request) {
		k := &kept{r: r, body: make([]byte, 5), addr: r.RemoteAddr}
		_, _ = io.ReadFull(r.Body, k.body)
		k.text = strings.Clone(text(r))
		_, _ = io.WriteString(w, "hello")
		all <- k
		<-never
		_, k.read = io.ReadAll(r.Body)
		_, k.write = io.WriteString(w, strings.Repeat("more than is gathered", 1000))
		done <- k
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, text(r))
	})
	h := serve(t, &nethttp.Adapter{Handler: mux}, bound)
	want := map[string]string{}
	for name, leave := range stuck {
		c := h.dial()
		c.send(fmt.Sprintf("POST /stuck/%s?a=%s HTTP/1.1\nHost: %s.example\nA: %s\nTransfer-Encoding: chunked\nTrailer: Sum\n\n7\nhe%5.5s\n",
			name, name, name, name, name))
		k, ok := await(all)
		require.True(t, ok)
		require.Equal(t, fmt.Sprintf("he%5.5s", name)[:5], string(k.body))
		want[k.r.PathValue("name")] = k.text
		leave(c)
	}
	for range tier.Choose(10, 20, 500) {
		c := h.dial()
		for i := 10000; i < 10020; i++ {
			c.send(fmt.Sprintf("POST /other/%d?a=%d HTTP/1.1\nHost: %d.example\nA: %d\nTransfer-Encoding: chunked\n\n7\nother%02d\n0\n\n",
				i, i, i, i, i%100))
			a, err := c.answer("POST")
			require.NoError(t, err)
			require.Contains(t, string(a.body), fmt.Sprintf("/other/%d?a=%d", i, i))
		}
		_ = c.Close()
	}
	begun := time.Now()
	err := h.end()
	require.GreaterOrEqual(t, time.Since(begun), bound)
	cut := &shutdown.Cut{}
	require.ErrorAs(t, err, &cut)
	require.Equal(t, len(stuck), cut.Tasks, "those without a client count as well")
	close(never)
	for range stuck {
		k := <-done
		name := k.r.PathValue("name")
		require.Equal(t, want[name], text(k.r))
		require.Equal(t, fmt.Sprintf("he%5.5s", name)[:5], string(k.body))
		require.Equal(t, k.addr, k.r.RemoteAddr)
		require.Error(t, k.r.Context().Err())
		require.ErrorIs(t, k.read, net.ErrClosed)
		require.ErrorIs(t, k.write, net.ErrClosed)
	}
	h.until("they have returned", func() bool { return h.running.Load() == 0 })
}
