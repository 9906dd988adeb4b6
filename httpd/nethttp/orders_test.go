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

// page is the answer to a number: more than is gathered, and another one for each.
func page(number string) string { return strings.Repeat(number+"\n", 2000) }

// A guest is a client whose answer has begun.
type guest struct {
	*client
	number string
	got    chan error // nil: the whole answer has come, and the end of the connection behind it
}

// guests sends requests to a path, and returns when the handlers run.
func (h *host) guests(path string, n int) []*guest {
	h.Helper()
	all := make([]*guest, n)
	before := h.running.Load()
	for i := range all {
		g := &guest{h.dial(), fmt.Sprint(path, i), make(chan error, 1)}
		all[i] = g
		g.send("GET " + g.number + " HTTP/1.1\nHost: a\n\n")
		go func() { g.got <- g.take() }()
	}
	h.until("the handlers run", func() bool { return h.running.Load() == before+int32(n) })
	return all
}

// take reads the answer.
func (g *guest) take() error {
	defer g.Close() // or the server lingers
	_ = g.SetDeadline(time.Now().Add(10 * patience))
	a, err := g.answer("GET")
	switch {
	case err != nil:
		return err
	case a.cut || a.status != 200 || string(a.body) != page(g.number):
		return fmt.Errorf("%v", a)
	}
	if _, err := g.in.ReadByte(); err != io.EOF {
		return fmt.Errorf("the connection goes on: %v", err)
	}
	return nil
}

// Handlers that wait when an order comes are waited for. Their contexts go on, and each client gets its whole answer.
func TestDrain(t *testing.T) {
	n := tier.Choose(60, 200, 1000)
	next := make(chan struct{})
	h := serve(t, &nethttp.Adapter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := page(r.URL.Path)
		if strings.HasPrefix(r.URL.Path, "/begun") {
			_, _ = io.WriteString(w, text[:100])
			w.(http.Flusher).Flush()
			text = text[100:]
		}
		select {
		case <-next:
			_, _ = io.WriteString(w, text)
		case <-r.Context().Done():
		}
	})}, 10*patience, nil)
	all := append(h.guests("/begun", n/2), h.guests("/quiet", n-n/2)...)
	h.order()
	refused(h)
	for range n / 2 {
		next <- struct{}{}
	}
	select {
	case err := <-h.over:
		require.Fail(t, "Run has not waited", err)
	default:
	}
	close(next)
	for _, g := range all {
		require.NoError(t, <-g.got)
	}
	require.NoError(t, <-h.over)
	require.Zero(t, h.running.Load())
}

// refused waits until new clients are: then the order is being carried out.
func refused(h *host) {
	h.Helper()
	h.until("clients are refused", func() bool {
		c, err := net.Dial("tcp", h.address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
}

// Handlers that are not done in time are counted, and their clients cut off. So are those whose clients have gone before.
func TestCut(t *testing.T) {
	n, stuck := tier.Choose(40, 200, 1000), tier.Choose(5, 20, 100)
	const bound = 300 * time.Millisecond
	next, never := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2*stuck)
	h := serve(t, &nethttp.Adapter{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := page(r.URL.Path)
		_, _ = io.WriteString(w, text[:100])
		w.(http.Flusher).Flush()
		if !strings.HasPrefix(r.URL.Path, "/stuck") {
			<-next
			_, _ = io.WriteString(w, text[100:])
			return
		}
		<-never
		ended <- r.Context().Err()
		_, err := io.WriteString(w, text[100:])
		ended <- err
	})}, 10*patience, nil)
	stay := h.guests("/stuck", stuck)
	all := h.guests("/page", n-stuck)
	h.order()
	refused(h)
	close(next)
	for _, g := range all {
		require.NoError(t, <-g.got)
	}
	// From here on it is a matter of the others, so their time is shortened.
	begun := time.Now()
	h.group.Shutdown(shutdown.Now{Terms: shutdown.Policy{Time: bound, Drop: true}})
	err := <-h.over
	took := time.Since(begun)
	require.GreaterOrEqual(t, took, bound)
	require.Less(t, took, bound+patience, "Run waits for handlers that do not return")
	cut := &shutdown.Cut{}
	require.ErrorAs(t, err, &cut)
	require.Equal(t, stuck, cut.Tasks)
	require.Contains(t, err.Error(), "httpd: GET /stuck")
	for _, g := range stay {
		require.Error(t, <-g.got)
	}
	require.EqualValues(t, stuck, h.running.Load())
	close(never)
	for range stuck {
		require.NotNil(t, <-ended)
		require.NotNil(t, <-ended)
	}
	h.until("they have returned", func() bool { return h.running.Load() == 0 })
}

// Run waits for handlers whose clients have gone, as it does for the others.
func TestDrainWaitsForHandlersWithoutClients(t *testing.T) {
	next, begun := make(chan struct{}), make(chan struct{})
	h := serve(t, &nethttp.Adapter{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(begun)
		<-next
	})}, 10*patience, nil)
	c := h.dial()
	c.send(get)
	h.until("it runs", func() bool { return h.running.Load() == 1 })
	c.reset()
	<-begun
	h.order()
	refused(h)
	select {
	case err := <-h.over:
		require.Fail(t, "Run has not waited", err)
	case <-time.After(50 * time.Millisecond): // nothing shows that Run has come to its end, but that it returns
	}
	close(next)
	require.NoError(t, <-h.over)
	require.Zero(t, h.running.Load())
}

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
		_, k.write = io.WriteString(w, page("more than is gathered"))
		done <- k
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, text(r))
	})
	h := serve(t, &nethttp.Adapter{Handler: mux}, bound, nil)
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
