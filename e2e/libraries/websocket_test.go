package libraries

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/servertest"
)

// sockets is a handler of WebSocket, as the documentation of its library has them.
type sockets struct {
	ended chan error // what the connections to /echo ended with
	left  sync.WaitGroup
}

func newSockets() *sockets { return &sockets{ended: make(chan error, 100)} }

func (s *sockets) handler() http.Handler {
	all := http.NewServeMux()
	all.HandleFunc("/echo", s.echo)
	all.HandleFunc("/ping", s.ping)
	all.HandleFunc("/leave", s.leave)
	return all
}

func accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"echo"},
		CompressionMode: websocket.CompressionContextTakeover})
	if err == nil {
		c.SetReadLimit(-1)
	}
	return c, err
}

// echo sends back what it gets.
func (s *sockets) echo(w http.ResponseWriter, r *http.Request) {
	c, err := accept(w, r)
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	s.ended <- repeat(r.Context(), c)
}

func repeat(ctx context.Context, c *websocket.Conn) error {
	for {
		kind, message, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if err := c.Write(ctx, kind, message); err != nil {
			return err
		}
	}
}

// ping asks the client for a sign of life, and then closes.
func (s *sockets) ping(w http.ResponseWriter, r *http.Request) {
	c, err := accept(w, r)
	if err != nil {
		return
	}
	defer c.CloseNow()
	if err := c.Ping(c.CloseRead(r.Context())); err != nil {
		_ = c.Close(websocket.StatusInternalError, err.Error())
		return
	}
	_ = c.Close(4321, "it lives")
}

// leave has a goroutine of its own echo, and returns at once, as servers do that keep their connections in a hub.
func (s *sockets) leave(w http.ResponseWriter, r *http.Request) {
	c, err := accept(w, r)
	if err != nil {
		return
	}
	s.left.Go(func() {
		defer c.CloseNow()
		_ = repeat(context.Background(), c)
	})
}

// open is a client's connection.
func (v *web) open(path string) (*websocket.Conn, context.Context) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), servertest.Timeout)
	v.Cleanup(cancel)
	c, _, err := websocket.Dial(ctx, v.url+path, &websocket.DialOptions{HTTPClient: v.client, Subprotocols: []string{"echo"},
		CompressionMode: websocket.CompressionContextTakeover})
	require.NoError(v, err)
	v.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(-1)
	require.Equal(v, "echo", c.Subprotocol())
	return c, ctx
}

// echoed sends a message and requires that it comes back.
func echoed(t *testing.T, ctx context.Context, c *websocket.Conn, kind websocket.MessageType, message []byte) {
	t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- c.Write(ctx, kind, message) }()
	same, got, err := c.Read(ctx)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, kind, same)
	require.True(t, bytes.Equal(message, got))
}

// talk is what a client of /echo does. Its longest message has n bytes.
func (v *web) talk(s *sockets, n int) {
	v.Helper()
	c, ctx := v.open("/echo")
	for i := range 200 {
		echoed(v.T, ctx, c, websocket.MessageText, []byte(strings.Repeat("x", i)))
	}
	echoed(v.T, ctx, c, websocket.MessageBinary, bytes.Repeat([]byte("abc"), n/3))
	echoed(v.T, ctx, c, websocket.MessageBinary, noise(n))
	echoed(v.T, ctx, c, websocket.MessageText, nil)
	require.NoError(v, c.Close(4000, "enough"))
	require.EqualValues(v, 4000, websocket.CloseStatus(servertest.Receive(v.T, s.ended)))
}

// noise is n bytes that cannot be compressed.
func noise(n int) []byte {
	b, x := make([]byte, n), uint32(1)
	for i := range b {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		b[i] = byte(x)
	}
	return b
}

func TestWebSocket(t *testing.T) {
	var s *sockets
	each(t, kinds, func() http.Handler {
		s = newSockets()
		return s.handler()
	}, func(v *web) {
		v.talk(s, 8<<20)

		c, ctx := v.open("/ping")
		_, _, err := c.Read(ctx) // answers the ping
		require.EqualValues(v, 4321, websocket.CloseStatus(err), "%v", err)

		c, ctx = v.open("/echo")
		reading := c.CloseRead(ctx) // takes the pong
		require.NoError(v, c.Ping(ctx))
		require.NoError(v, reading.Err())
		require.NoError(v, c.CloseNow())
		require.Error(v, servertest.Receive(v.T, s.ended), "a client that vanishes")

		c, ctx = v.open("/leave")
		echoed(v.T, ctx, c, websocket.MessageText, []byte("the handler has returned"))
		echoed(v.T, ctx, c, websocket.MessageBinary, noise(1<<20))
		require.NoError(v, c.Close(websocket.StatusNormalClosure, ""))
		s.left.Wait()

		require.Equal(v, http.StatusUpgradeRequired, v.ask("GET", "/echo", nil).StatusCode, "no WebSocket")
	})
}

func TestManyWebSockets(t *testing.T) {
	const clients = 50
	var s *sockets
	each(t, kinds, func() http.Handler {
		s = newSockets()
		return s.handler()
	}, func(v *web) {
		results := make(chan error, clients)
		for i := range clients {
			c, ctx := v.open("/echo")
			go func() {
				results <- func() error {
					for j := range 20 {
						message := fmt.Sprint(i, "/", j, strings.Repeat("-", j*i))
						if err := c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
							return err
						}
						_, got, err := c.Read(ctx)
						if err != nil {
							return err
						}
						if string(got) != message {
							return fmt.Errorf("%q came back as %q", message, got)
						}
					}
					return c.Close(websocket.StatusNormalClosure, "")
				}()
			}()
		}
		for range clients {
			require.NoError(v, servertest.Receive(v.T, results))
			require.Equal(v, websocket.StatusNormalClosure, websocket.CloseStatus(servertest.Receive(v.T, s.ended)))
		}
	})
}

// With an order to end a hijacked connection gets no more input, so its handler comes to its end. (The Shutdown of net/http
// leaves such connections alone.)
func TestDrainEndsWebSockets(t *testing.T) {
	for _, k := range ours {
		t.Run(k.name, func(t *testing.T) {
			s := newSockets()
			v := k.serve(t, s.handler())
			var clients []*websocket.Conn
			for _, path := range []string{"/echo", "/leave"} {
				c, ctx := v.open(path)
				echoed(t, ctx, c, websocket.MessageText, []byte("hello"))
				clients = append(clients, c)
			}
			gone := make(chan error, len(clients))
			for _, c := range clients {
				go func() {
					_, _, err := c.Read(t.Context())
					gone <- err
				}()
			}
			v.drain()
			for range clients {
				require.Error(t, servertest.Receive(t, gone))
			}
			require.Error(t, servertest.Receive(t, s.ended))
			s.left.Wait()
		})
	}
}

// Behind the middleware of chi, which wraps the ResponseWriter, and behind a reverse proxy.
func TestWebSocketThroughOthers(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			s := newSockets()
			routes := chi.NewRouter()
			routes.Use(middleware.RequestID, quiet(), middleware.Recoverer, middleware.Compress(5))
			routes.Mount("/", s.handler())
			behind := k.serve(t, routes)
			behind.talk(s, 1<<20)

			to, err := url.Parse(behind.url)
			require.NoError(t, err)
			front := k.serve(t, &httputil.ReverseProxy{Transport: behind.client.Transport,
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
			front.talk(s, 1<<20)

			c, ctx := front.open("/echo")
			echoed(t, ctx, c, websocket.MessageText, []byte("hello"))
			require.NoError(t, c.CloseNow())
			require.Error(t, servertest.Receive(t, s.ended), "the end of the client gets through")
			front.drain()
			behind.drain()
		})
	}
}
