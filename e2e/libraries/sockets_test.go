package libraries

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/websocket-echo/echo"
	"github.com/daimon-go/daimon/httpd"
	daimon "github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// exchange sends a message, and reads it.
func exchange(s coderSocket) error {
	if err := s.write(true, []byte("x")); err != nil {
		return err
	}
	_, p, err := s.read()
	if err == nil && string(p) != "x" {
		err = fmt.Errorf("x came back as %q", p)
	}
	return err
}

// coderSocket is a connection of the library. Its calls have servertest.Timeout.
type coderSocket struct {
	*websocket.Conn
	ctx context.Context
}

// dialCoder dials. With on it offers to compress messages, with context takeover or without.
func dialCoder(t *testing.T, url string, on, takeover bool) (coderSocket, http.Header, error) {
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
	t.Cleanup(cancel)
	v := visitor(t, url, nil)
	t.Cleanup(v.client.CloseIdleConnections)
	options := &websocket.DialOptions{HTTPClient: v.client, Subprotocols: []string{"chat.v1"}}
	switch {
	case takeover:
		options.CompressionMode = websocket.CompressionContextTakeover
	case on:
		options.CompressionMode = websocket.CompressionNoContextTakeover
	}
	c, answer, err := websocket.Dial(ctx, url, options)
	if err != nil {
		return coderSocket{}, nil, err
	}
	c.SetReadLimit(-1)
	return coderSocket{c, ctx}, answer.Header, nil
}

func coderType(text bool) websocket.MessageType {
	if text {
		return websocket.MessageText
	}
	return websocket.MessageBinary
}

func (c coderSocket) write(text bool, p []byte) error { return c.Write(c.ctx, coderType(text), p) }

func (c coderSocket) fragments(all ...[]byte) error {
	w, err := c.Writer(c.ctx, websocket.MessageText)
	for _, p := range all {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	if err != nil {
		return err
	}
	return w.Close()
}

func (c coderSocket) read() (bool, []byte, error) {
	kind, p, err := c.Read(c.ctx)
	return kind == websocket.MessageText, p, err
}

func (c coderSocket) ping() error {
	pinged := make(chan error, 1)
	go func() { pinged <- c.Ping(c.ctx) }()
	for {
		select {
		case err := <-pinged:
			return err
		default:
			if err := exchange(c); err != nil { // pongs are taken by calls that read
				return err
			}
		}
	}
}

func (c coderSocket) end(code int, reason string) (int, error) {
	return code, c.Close(websocket.StatusCode(code), reason) // an error if the answer has another code
}

func (c coderSocket) closed(err error) int { return max(0, int(websocket.CloseStatus(err))) }
func (c coderSocket) drop()                { _ = c.CloseNow() }

// startSockets starts the example server.
func startSockets(t *testing.T, options daimon.Options, filters ...listener.Filter) *server {
	site := &httpd.Server{Handler: echo.Site(options)}
	s := &server{socket: &service.Listener{Address: "127.0.0.1:0", Handler: site.Serve, Filters: filters}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 2}, s.socket.Setup)
	return s
}

// Another library talks to the example websocket-echo: without compression, with it over TLS, and with context takeover.
func TestSocketsOfAnotherLibrary(t *testing.T) {
	made, err := secure.SelfSigned()
	require.NoError(t, err)
	tlsFilter := secure.Server(&tls.Config{Certificates: []tls.Certificate{made}}, nil)
	for _, row := range []struct {
		name, scheme string
		options      daimon.Options
		filters      []listener.Filter
	}{
		{"plain", "ws", daimon.Options{}, nil},
		{"compressed, over TLS", "wss", daimon.Options{Compress: 1}, []listener.Filter{tlsFilter}},
		{"takeover", "ws", daimon.Options{Compress: 1, Takeover: true}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := startSockets(t, row.options, row.filters...)
			open := func() coderSocket {
				c, answer, err := dialCoder(t, row.scheme+"://"+s.address()+"/ws", row.options.Compress > 0, row.options.Takeover)
				require.NoError(t, err)
				t.Cleanup(c.drop)
				require.Equal(t, "chat.v1", answer.Get("Sec-Websocket-Protocol"))
				agreed := answer.Get("Sec-Websocket-Extensions")
				require.Equal(t, row.options.Compress > 0, strings.HasPrefix(agreed, "permessage-deflate"), agreed)
				without := row.options.Compress > 0 && !row.options.Takeover
				require.Equal(t, without, strings.Contains(agreed, "server_no_context_takeover"), agreed)
				return c
			}
			c := open()
			talks(t, c)
			code, err := c.end(4000, "enough")
			require.NoError(t, err)
			require.Equal(t, 4000, code)
			c.drop() // the server would wait for that

			c = open()
			_ = c.write(false, make([]byte, echo.MaxMessage+1)) // it may find the connection closed
			_, _, err = c.read()
			require.Equal(t, 1009, c.closed(err), "%v", err)
			c.drop()

			open().drop() // without a word
			c = open()
			require.NoError(t, exchange(c))
			s.Group.Shutdown(servertest.Drain)
			_, _, err = c.read()
			require.Equal(t, 1001, c.closed(err), "%v", err)
			c.drop()
			s.drain()
		})
	}
}

// talks has a client send messages of all sizes, fragments and a ping.
func talks(t *testing.T, c coderSocket) {
	for range 3 {
		p := []byte(strings.Repeat("it is said again and again, ", 10_000))
		require.NoError(t, c.write(true, p))
		_, got, err := c.read()
		require.NoError(t, err)
		require.True(t, bytes.Equal(p, got))
	}
	for _, n := range []int{0, 1, 125, 126, 127, 4095, 4096, 65535, 65536, 1 << 20} {
		p := noise(n)
		require.NoError(t, c.write(false, p))
		text, got, err := c.read()
		require.NoError(t, err)
		require.False(t, text)
		require.True(t, bytes.Equal(p, got), "%d bytes", n)
	}
	require.NoError(t, c.fragments([]byte("κόσ\xce"), []byte("\xbcε"), []byte(strings.Repeat("€", 100_000)), []byte("!")))
	text, got, err := c.read()
	require.NoError(t, err)
	require.True(t, text)
	require.Equal(t, "κόσμε"+strings.Repeat("€", 100_000)+"!", string(got))
	require.NoError(t, c.ping())
}

// noise is n bytes that cannot be compressed.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}
