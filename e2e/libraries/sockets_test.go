package libraries

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	gobwas "github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	gorilla "github.com/gorilla/websocket"
	"github.com/lxzan/gws"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/websocket-echo/echo"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

// socket is a client's connection of WebSocket. Its calls have servertest.Timeout.
type socket interface {
	write(text bool, p []byte) error
	fragments(p ...[]byte) error // of a text
	read() (text bool, p []byte, err error)
	ping() error // and waits for the answer
	// end closes with a code, and returns the one of the answer.
	end(code int, reason string) (int, error)
	closed(err error) int // the code that an error of read has; 0: none
	drop()
}

// peers are libraries of clients.
var peers = map[string]func(t *testing.T, url string) (s socket, subprotocol string, err error){
	"coder":   dialCoder,
	"gorilla": dialGorilla,
	"gws":     dialGWS,
	"gobwas":  dialGobwas,
}

var anyone = &tls.Config{InsecureSkipVerify: true}

// exchange sends a message, and reads it.
func exchange(s socket) error {
	if err := s.write(true, []byte("x")); err != nil {
		return err
	}
	_, p, err := s.read()
	if err == nil && string(p) != "x" {
		err = fmt.Errorf("x came back as %q", p)
	}
	return err
}

type coderSocket struct {
	*websocket.Conn
	ctx context.Context
}

func dialCoder(t *testing.T, url string) (socket, string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Timeout)
	t.Cleanup(cancel)
	v := visitor(t, url, nil)
	t.Cleanup(v.client.CloseIdleConnections)
	c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: v.client, Subprotocols: []string{"chat.v1"}})
	if err != nil {
		return nil, "", err
	}
	c.SetReadLimit(-1)
	return coderSocket{c, ctx}, c.Subprotocol(), nil
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

type gorillaSocket struct {
	*gorilla.Conn
	pongs *int
}

func dialGorilla(_ *testing.T, url string) (socket, string, error) {
	d := gorilla.Dialer{TLSClientConfig: anyone, Subprotocols: []string{"chat.v1"}, WriteBufferSize: 100}
	c, _, err := d.Dial(url, nil)
	if err != nil {
		return nil, "", err
	}
	s := gorillaSocket{c, new(int)}
	c.SetPongHandler(func(string) error { *s.pongs++; return nil })
	return s, c.Subprotocol(), errors.Join(c.SetReadDeadline(soon()), c.SetWriteDeadline(soon()))
}

func soon() time.Time { return time.Now().Add(servertest.Timeout) }

func gorillaType(text bool) int {
	if text {
		return gorilla.TextMessage
	}
	return gorilla.BinaryMessage
}

func (c gorillaSocket) write(text bool, p []byte) error { return c.WriteMessage(gorillaType(text), p) }

// fragments has a ping between each two.
func (c gorillaSocket) fragments(all ...[]byte) error {
	w, err := c.NextWriter(gorilla.TextMessage)
	for _, p := range all {
		if err == nil {
			_, err = w.Write(p)
		}
		if err == nil {
			err = c.WriteControl(gorilla.PingMessage, nil, soon())
		}
	}
	if err != nil {
		return err
	}
	return w.Close()
}

func (c gorillaSocket) read() (bool, []byte, error) {
	kind, p, err := c.ReadMessage()
	return kind == gorilla.TextMessage, p, err
}

func (c gorillaSocket) ping() error {
	before := *c.pongs
	if err := c.WriteControl(gorilla.PingMessage, []byte("a"), soon()); err != nil {
		return err
	}
	if err := exchange(c); err != nil {
		return err
	}
	if *c.pongs != before+1 {
		return errors.New("no pong")
	}
	return nil
}

func (c gorillaSocket) end(code int, reason string) (int, error) {
	if err := c.WriteControl(gorilla.CloseMessage, gorilla.FormatCloseMessage(code, reason), soon()); err != nil {
		return 0, err
	}
	_, _, err := c.ReadMessage()
	return c.closed(err), nil
}

func (c gorillaSocket) closed(err error) int {
	if bad := (*gorilla.CloseError)(nil); errors.As(err, &bad) {
		return bad.Code
	}
	return 0
}

func (c gorillaSocket) drop() { _ = c.Close() }

// gobwasSocket uses the frames of the library.
type gobwasSocket struct {
	net.Conn
	in    io.Reader
	pongs *int
}

func dialGobwas(_ *testing.T, url string) (socket, string, error) {
	d := gobwas.Dialer{TLSConfig: anyone, Protocols: []string{"chat.v1"}, Timeout: servertest.Timeout}
	c, buffered, h, err := d.Dial(context.Background(), url)
	if err != nil {
		return nil, "", err
	}
	s := gobwasSocket{c, c, new(int)}
	if buffered != nil {
		s.in = buffered
	}
	return s, h.Protocol, c.SetDeadline(soon())
}

func (c gobwasSocket) write(text bool, p []byte) error {
	if text {
		return wsutil.WriteClientText(c.Conn, p)
	}
	return wsutil.WriteClientBinary(c.Conn, p)
}

func (c gobwasSocket) fragments(all ...[]byte) error {
	for i, p := range all {
		o := gobwas.OpContinuation
		if i == 0 {
			o = gobwas.OpText
		}
		f := gobwas.MaskFrame(gobwas.NewFrame(o, i == len(all)-1, bytes.Clone(p)))
		if err := gobwas.WriteFrame(c.Conn, f); err != nil {
			return err
		}
	}
	return nil
}

type gobwasClosed int

func (e gobwasClosed) Error() string { return fmt.Sprintf("closed with code %d", int(e)) }

func (c gobwasSocket) read() (bool, []byte, error) {
	for {
		h, err := gobwas.ReadHeader(c.in)
		if err != nil {
			return false, nil, err
		}
		p := make([]byte, h.Length)
		if _, err := io.ReadFull(c.in, p); err != nil {
			return false, nil, err
		}
		switch h.OpCode {
		case gobwas.OpPong:
			*c.pongs++
		case gobwas.OpClose:
			code, _ := gobwas.ParseCloseFrameData(p)
			return false, nil, gobwasClosed(code)
		default:
			return h.OpCode == gobwas.OpText, p, gobwas.CheckHeader(h, gobwas.StateClientSide)
		}
	}
}

func (c gobwasSocket) ping() error {
	before := *c.pongs
	if err := wsutil.WriteClientMessage(c.Conn, gobwas.OpPing, []byte("a")); err != nil {
		return err
	}
	if err := exchange(c); err != nil {
		return err
	}
	if *c.pongs != before+1 {
		return errors.New("no pong")
	}
	return nil
}

func (c gobwasSocket) end(code int, reason string) (int, error) {
	body := gobwas.NewCloseFrameBody(gobwas.StatusCode(code), reason)
	if err := wsutil.WriteClientMessage(c.Conn, gobwas.OpClose, body); err != nil {
		return 0, err
	}
	_, _, err := c.read()
	return c.closed(err), nil
}

func (c gobwasSocket) closed(err error) int {
	if code := gobwasClosed(0); errors.As(err, &code) {
		return int(code)
	}
	return 0
}

func (c gobwasSocket) drop() { _ = c.Close() }

// gwsSocket is a connection with callbacks, and a goroutine that calls them.
type gwsSocket struct {
	gws.BuiltinEventHandler
	*gws.Conn
	got   chan gwsMessage
	pongs chan struct{}
	ended chan error
}

type gwsMessage struct {
	text bool
	p    []byte
}

func (c *gwsSocket) OnMessage(_ *gws.Conn, m *gws.Message) {
	c.got <- gwsMessage{m.Opcode == gws.OpcodeText, bytes.Clone(m.Bytes())}
	_ = m.Close()
}
func (c *gwsSocket) OnPong(*gws.Conn, []byte)       { c.pongs <- struct{}{} }
func (c *gwsSocket) OnClose(_ *gws.Conn, err error) { c.ended <- err }

func dialGWS(_ *testing.T, url string) (socket, string, error) {
	s := &gwsSocket{got: make(chan gwsMessage, 10), pongs: make(chan struct{}, 10), ended: make(chan error, 1)}
	c, _, err := gws.NewClient(s, &gws.ClientOption{Addr: url, TlsConfig: anyone, WriteMaxPayloadSize: 32 << 20,
		CheckUtf8Enabled: true, RequestHeader: http.Header{"Sec-Websocket-Protocol": {"chat.v1"}}})
	if err != nil {
		return nil, "", err
	}
	s.Conn = c
	go c.ReadLoop()
	return s, c.SubProtocol(), c.SetDeadline(soon())
}

func (c *gwsSocket) write(text bool, p []byte) error {
	if text {
		return c.WriteMessage(gws.OpcodeText, p)
	}
	return c.WriteMessage(gws.OpcodeBinary, p)
}

// fragments are made by the library from a file.
func (c *gwsSocket) fragments(all ...[]byte) error {
	return c.WriteFile(gws.OpcodeText, bytes.NewReader(bytes.Join(all, nil)))
}

func (c *gwsSocket) read() (bool, []byte, error) {
	select {
	case m := <-c.got:
		return m.text, m.p, nil
	case err := <-c.ended:
		return false, nil, err
	}
}

func (c *gwsSocket) ping() error {
	if err := c.WritePing([]byte("a")); err != nil {
		return err
	}
	if err := exchange(c); err != nil {
		return err
	}
	<-c.pongs // its callback comes before that of the message
	return nil
}

// end returns the code that the library has sent: it does not wait for the answer.
func (c *gwsSocket) end(code int, reason string) (int, error) {
	return code, c.WriteClose(uint16(code), []byte(reason))
}

func (c *gwsSocket) closed(err error) int {
	if bad := (*gws.CloseError)(nil); errors.As(err, &bad) {
		return int(bad.Code)
	}
	return 0
}

func (c *gwsSocket) drop() { _ = c.NetConn().Close() }

// startSockets starts the example server.
func startSockets(t *testing.T, filters ...listener.Filter) *server {
	site := &httpd.Server{Handler: echo.Site()}
	s := &server{socket: &service.TCP{Address: "127.0.0.1:0", Handler: site.Serve, Filters: filters}}
	s.Running = servertest.Start(t, act.Config{Schedulers: 2}, s.socket.Setup)
	return s
}

// Other libraries talk to the example websocket-echo.
func TestSocketsOfOtherLibraries(t *testing.T) {
	made, err := secure.SelfSigned()
	require.NoError(t, err)
	tlsFilter := secure.Server(&tls.Config{Certificates: []tls.Certificate{made}}, nil)
	for scheme, filters := range map[string][]listener.Filter{"ws": nil, "wss": {tlsFilter}} {
		for name, dial := range peers {
			t.Run(scheme+"/"+name, func(t *testing.T) {
				s := startSockets(t, filters...)
				open := func() socket {
					c, subprotocol, err := dial(t, scheme+"://"+s.address()+"/ws")
					require.NoError(t, err)
					t.Cleanup(c.drop)
					require.Equal(t, "chat.v1", subprotocol)
					return c
				}
				c := open()
				for _, n := range []int{0, 1, 125, 126, 127, 4095, 4096, 65535, 65536, 65537, 1 << 20, echo.MaxMessage} {
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
				code, err := c.end(4000, "enough")
				require.NoError(t, err)
				require.Equal(t, 4000, code)

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
}

// All messages are written at once, so they come in segments that are as full as they can be.
func TestManyTinyMessagesAtOnce(t *testing.T) {
	const n = 100_000
	s := startSockets(t)
	c, _, err := dialGobwas(t, "ws://"+s.address()+"/ws")
	require.NoError(t, err)
	t.Cleanup(c.drop)
	var all bytes.Buffer
	for i := range n {
		require.NoError(t, wsutil.WriteClientText(&all, fmt.Append(nil, i)))
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.(gobwasSocket).Write(all.Bytes())
		sent <- err
	}()
	for i := range n {
		_, p, err := c.read()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(p))
	}
	require.NoError(t, <-sent)
	code, err := c.end(1000, "")
	require.NoError(t, err)
	require.Equal(t, 1000, code)
	c.drop()
	s.drain()
}
