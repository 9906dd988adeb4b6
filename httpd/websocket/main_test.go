package websocket_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/httpd/websocket/internal/deflate"
	"github.com/daimon-go/daimon/httpd/websocket/internal/frame"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(exit int) {
		if !websocket.NothingExtra() {
			fmt.Println("what connections at rest share has been changed")
			exit = 1
		}
		os.Exit(exit)
	}))
}

// world is a scheduler that the test steps, over real sockets, with a clock that the test advances.
type world struct {
	*servertest.Stepped
	now time.Duration
}

func (w *world) Monotonic() time.Duration { return w.now }
func (w *world) Wall() time.Time          { return time.Unix(1_800_000_000, 0).Add(w.now) }

func newWorld(t testing.TB) *world {
	w := &world{}
	w.Stepped = servertest.New(t, act.Config{Clock: w})
	return w
}

// pass advances the clock, and runs everything that becomes due.
func (w *world) pass(d time.Duration) {
	for end := w.now + d; ; {
		servertest.Step(w.T, w.S)
		next, ok := w.S.NextDeadline()
		if !ok || next > end {
			w.now = end
			servertest.Step(w.T, w.S)
			return
		}
		w.now = max(next, w.now+1)
	}
}

// peer is a Stream whose other side is in memory.
type peer struct {
	monitor.Stream
	says   []byte // what is to be received
	over   bool   // after that it ends
	heard  []byte
	reader act.Waker
	gone   bool
}

func (p *peer) say(w *world, piece string) {
	p.says = append(p.says, piece...)
	p.reader.Wake()
	servertest.Step(w.T, w.S)
}

func (p *peer) Lend(most int) ([]byte, error) {
	switch {
	case len(p.says) > 0:
	case p.over:
		return nil, io.EOF
	default:
		return nil, monitor.ErrWouldBlock
	}
	lent := bytes.Clone(p.says[:min(most, len(p.says))]) // lent bytes are spoilt after the turn
	if p.says = p.says[len(lent):]; len(p.says) == 0 {
		p.says = nil
	}
	return lent, nil
}

func (p *peer) Receive(to []byte) (int, error) {
	in, err := p.Lend(len(to))
	return copy(to, in), err
}

func (p *peer) Send(head, b []byte, _ int) (int, error) {
	p.heard = append(append(p.heard, head...), b...)
	return len(b), nil
}

func (p *peer) AwaitInput(w act.Waker) {
	if p.reader = w; len(p.says) > 0 || p.over {
		w.Wake()
	}
}

func (p *peer) Queued() (int, error)               { return 0, nil }
func (p *peer) AwaitEnd(w act.Waker) (bool, error) { p.reader = w; return false, nil }
func (p *peer) AwaitOutput(w act.Waker, _ int)     { w.Wake() }
func (p *peer) Abort()                             { p.gone = true }
func (p *peer) Close(time.Duration)                { p.gone = true }
func (p *peer) PeerAddr() net.Addr                 { return nil }

// client is a peer of a server of WebSocket, or of a client: then its Conn is a server.
type client struct {
	net.Conn
	w *world
}

type server struct{ *net.TCPConn }

const handshake = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// connect makes a connection to v without a handshake.
func (w *world) connect(v *websocket.Server, limits listener.Limits) *client {
	conn, peer := w.Conn("tcp", limits)
	w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(conn))
	return &client{peer, w}
}

// dial makes a connection of WebSocket.
func (w *world) dial(v *websocket.Server, limits listener.Limits) *client {
	c, _ := w.offer(v, limits, "")
	return c
}

// offer is dial with further fields. It returns the extensions that the server has agreed to.
func (w *world) offer(v *websocket.Server, limits listener.Limits, fields string) (c *client, extensions string) {
	c = w.connect(v, limits)
	c.send(handshake + fields + "\r\n")
	head := c.until("\r\n\r\n")
	require.True(w.T, strings.HasPrefix(head, "HTTP/1.1 101 "), head)
	_, rest, _ := strings.Cut(head, "Sec-WebSocket-Extensions: ")
	extensions, _, _ = strings.Cut(rest, "\r\n")
	return c, extensions
}

// send sends pieces, and has the server take each.
func (c *client) send(pieces ...string) {
	for _, p := range pieces {
		servertest.Send(c.w.T, c, p)
		servertest.Step(c.w.T, c.w.S)
	}
}

// read reads with a function that blocks, while the server has its turns.
func (c *client) read(f func() error) {
	c.w.T.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	var err error
	c.w.Until("the answer", func() bool {
		select {
		case err = <-done:
			return true
		default:
			return false
		}
	})
	require.NoError(c.w.T, err)
}

func (c *client) until(end string) (text string) {
	c.w.T.Helper()
	c.read(func() error {
		for b := []byte{0}; !strings.HasSuffix(text, end); text += string(b) {
			if _, err := c.Read(b); err != nil {
				return fmt.Errorf("after %q: %w", text, err)
			}
		}
		return nil
	})
	return text
}

// next returns the next frame of the server in words.
func (c *client) next() (said string) {
	c.w.T.Helper()
	c.read(func() (err error) {
		said, err = readFrame(c)
		return err
	})
	return said
}

// rest returns all frames up to the end of the connection. A server ends it after a close frame.
func (c *client) rest() (said string) {
	c.w.T.Helper()
	c.read(func() error {
		var all []string
		for {
			f, err := readFrame(c)
			if s, is := c.Conn.(server); is && strings.HasPrefix(f, "close") {
				err = s.CloseWrite()
			}
			if err == io.EOF {
				said = strings.Join(all, ", ")
				return c.Close()
			}
			if err != nil {
				return err
			}
			all = append(all, f)
		}
	})
	return said
}

// readFrame reads a frame of a server: text "a". One that is compressed without context takeover is inflated: packed text "a".
func readFrame(r io.Reader) (string, error) { return readPacked(r, deflate.New(deflate.Terms{})) }

func readPacked(r io.Reader, codec *deflate.Codec) (string, error) {
	h, p, err := readPayload(r)
	if err != nil {
		return "", err
	}
	name := map[frame.Opcode]string{0: "more", 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}[h.Opcode]
	if h.Compressed {
		name = "packed " + name
		if p, err = codec.Inflate(nil, p, 1<<30); err != nil {
			return "", err
		}
	}
	if h.Opcode == frame.Close && len(p) >= 2 {
		name, p = fmt.Sprint("close ", binary.BigEndian.Uint16(p)), p[2:]
	}
	if !h.Final {
		name += " (not final)"
	}
	if len(p) > 100 {
		return fmt.Sprintf("%s of %d", name, len(p)), nil
	}
	return fmt.Sprintf("%s %q", name, p), nil
}

// readPayload reads a frame, which has a mask if r is a server.
func readPayload(r io.Reader) (frame.Header, []byte, error) {
	var head []byte
	masked := false
	if c, is := r.(*client); is {
		_, masked = c.Conn.(server)
	}
	for {
		h, n, err := frame.Parse(head, masked, true)
		if err != nil {
			return h, nil, err
		}
		if n == 0 {
			b := []byte{0}
			if _, err := io.ReadFull(r, b); err != nil {
				return h, nil, err
			}
			head = append(head, b...)
			continue
		}
		p := make([]byte, h.Length)
		if _, err := io.ReadFull(r, p); err != nil {
			return h, nil, fmt.Errorf("in a frame: %w", err)
		}
		frame.Mask(p, p, h.Key, 0)
		return h, p, nil
	}
}

// one returns a frame of a client: final, unless o has 0x40.
func one(o frame.Opcode, payload string) string {
	h := frame.Header{Opcode: o &^ 0x40, Final: o&0x40 == 0, Masked: true, Key: [4]byte{0xA1, 0xB2, 0xC3, 0xD4}}
	h.Length = int64(len(payload))
	p := []byte(payload)
	frame.Mask(p, p, h.Key, 0)
	return string(append(h.Append(nil), p...))
}

// packed sets the bit of a compressed message in its first frame.
func packed(f string) string { return string([]byte{f[0] | 0x40}) + f[1:] }

func text(p string) string    { return one(frame.Text, p) }
func begin(p string) string   { return one(frame.Text|0x40, p) }
func more(p string) string    { return one(frame.Continuation|0x40, p) }
func last(p string) string    { return one(frame.Continuation, p) }
func ping(p string) string    { return one(frame.Ping, p) }
func closing(p string) string { return one(frame.Close, p) }

// bye is a close frame.
func bye(code int, reason string) string {
	return closing(string(frame.AppendClose(nil, code, reason)))
}

// echo sends back what it gets. It notes how its connection ends.
func echo(ended *error) func(*websocket.Conn, *httpd.Request) act.Action {
	return func(c *websocket.Conn, _ *httpd.Request) act.Action {
		var kept websocket.Message
		return act.Func(func(t *act.Task) act.Directive {
			m, err := kept, error(nil)
			if m.Type == 0 {
				m, err = c.Receive()
			}
			if err == nil {
				if err = c.Send(m.Type, m.Data); err == nil {
					kept = websocket.Message{}
					return c.Next(t, nil)
				}
				if kept.Type == 0 {
					kept = websocket.Message{Type: m.Type, Data: append([]byte{}, m.Data...)}
				}
			}
			if _, waits := err.(act.Blocked); !waits && ended != nil {
				*ended = err
			}
			return c.Next(t, err)
		})
	}
}

// pieces is echo by ReceivePiece: it sends a message for each message, made of pieces.
func pieces(ended *error) func(*websocket.Conn, *httpd.Request) act.Action {
	return func(c *websocket.Conn, _ *httpd.Request) act.Action {
		var kept []byte
		return act.Func(func(t *act.Task) act.Directive {
			m, last, err := c.ReceivePiece()
			if err == nil {
				if kept = append(kept, m.Data...); last {
					err = c.Send(m.Type, kept)
					kept = nil
				}
			}
			if _, waits := err.(act.Blocked); err != nil && !waits {
				*ended = err
			}
			return c.Next(t, err)
		})
	}
}
