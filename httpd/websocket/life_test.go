package websocket_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
)

// actor is an action made of functions, which notes what happens to it.
type actor struct {
	conn *websocket.Conn
	turn func(a *actor, t *act.Task) act.Directive
	log  []string
}

func (a *actor) Act(t *act.Task) act.Directive { return a.turn(a, t) }
func (a *actor) Close() error                  { a.log = append(a.log, "closed"); return nil }

func (a *actor) handler(c *websocket.Conn, _ *httpd.Request) act.Action {
	a.conn = c
	return a
}

// waits returns an action that never receives: it waits for whoever has its waker.
func waits() *actor {
	return &actor{turn: func(_ *actor, t *act.Task) act.Directive { t.Waker(); return act.Wait }}
}

// The close frame of a peer that leaves comes after a message that is not received, and the end of its input is not the end
// of the connection. So a ping finds out.
func TestAPeerLeavesBehindAMessageThatIsNotReceived(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler, Options: websocket.Options{Ping: 10 * time.Second}},
		listener.Limits{})
	c.send(text("a"), bye(1001, ""))
	require.NoError(t, c.Conn.Close())
	w.pass(9 * time.Second)
	require.Empty(t, a.log)
	w.pass(time.Second)
	w.Until("the action is closed", func() bool { return len(a.log) > 0 })
}

// Without an action there is nothing to wait for. One that fails ends its connection too, whatever has spawned it.
func TestWhatEndsAtOnce(t *testing.T) {
	fails := act.Func(func(t *act.Task) act.Directive { return t.Fail(errors.New("it broke")) })
	for told, action := range map[string]act.Action{`close 1000 ""`: nil, `close 1011 ""`: fails} {
		w := newWorld(t)
		c := w.dial(&websocket.Server{Handler: func(*websocket.Conn, *httpd.Request) act.Action { return action }}, listener.Limits{})
		c.send(bye(1000, ""))
		require.Equal(t, told, c.rest())
		require.Equal(t, action != nil, w.Logs.FilterMessage("a task failed").Len() == 1)
	}
}

func TestMistakesPanic(t *testing.T) {
	w := newWorld(t)
	a := waits()
	w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	require.Panics(t, func() { websocket.Prepare(0, nil) })
	require.Panics(t, func() { a.conn.Close(1005, "") })
	require.Panics(t, func() { a.conn.Close(999, "") })
	require.Panics(t, func() { _ = a.conn.Send(0, nil) })
	require.Panics(t, func() { (&websocket.Server{}).Serve(nil, nil) })
}

// What a message has lent is valid in this turn, even after further calls; memory of the connection is not.
func TestMessagesAreLentForTheTurn(t *testing.T) {
	for name, row := range map[string]struct {
		compress int
		says     func(i int) (says string, want []string)
	}{
		"plain": {0, func(i int) (string, []string) {
			word := fmt.Sprint(i, strings.Repeat("-", 100*i))
			return text(word) + begin("ab") + last("c"), []string{word, "abc"}
		}},
		"compressed": {256, func(i int) (string, []string) {
			word := fmt.Sprint(i, strings.Repeat("-", i*i*10))
			return squeezed(word) + text(word[:i+1]), []string{word, word[:i+1]}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var all []string
			a := &actor{turn: func(a *actor, t *act.Task) act.Directive {
				var lent [][]byte
				for {
					m, err := a.conn.Receive()
					if err != nil {
						for _, p := range lent {
							all = append(all, string(p))
						}
						return a.conn.Next(t, err)
					}
					lent = append(lent, m.Data)
				}
			}}
			v := &websocket.Server{Handler: a.handler, Options: websocket.Options{Compress: row.compress}}
			c, _ := w.offer(v, listener.Limits{}, offers)
			var says strings.Builder
			var want []string
			for i := range 60 {
				p, messages := row.says(i)
				says.WriteString(p)
				want = append(want, messages...)
			}
			c.send(says.String(), bye(1000, ""))
			require.Equal(t, `close 1000 ""`, c.rest())
			require.Equal(t, want, all)
		})
	}
}

func TestErrSaysHowAConnectionHasEnded(t *testing.T) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	require.NoError(t, a.conn.Err())
	c.send(bye(3000, "enough"))
	require.Equal(t, &websocket.CloseError{Code: 3000, Reason: "enough"}, a.conn.Err())

	c = w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
	w.Turn(func(*act.Task) { a.conn.Close(websocket.CodeNormal, "") })
	require.Equal(t, net.ErrClosed, a.conn.Err())
	c.send(bye(websocket.CodeNormal, ""))
	require.Equal(t, &websocket.CloseError{Code: websocket.CodeNormal}, a.conn.Err())
}

// full is more than the buffers of the kernel hold.
const full = 16 << 20

// slow returns a connection whose peer does not read, after a message of the size full.
func slow(t *testing.T, o websocket.Options) (*world, *actor, *client) {
	w := newWorld(t)
	a := waits()
	c := w.dial(&websocket.Server{Handler: a.handler, Options: o}, listener.Limits{})
	w.Turn(func(*act.Task) { require.NoError(t, a.conn.Send(websocket.Binary, make([]byte, full))) })
	return w, a, c
}

// note returns message n.
func note(n int) *websocket.Prepared { return websocket.Prepare(websocket.Text, []byte(fmt.Sprint(n))) }

// hear requires that the peer gets these messages next.
func (c *client) hear(from, to int) {
	c.w.T.Helper()
	for n := from; n < to; n++ {
		require.Equal(c.w.T, fmt.Sprintf("text %q", fmt.Sprint(n)), c.next())
	}
}

// What posted functions push in one pass goes out together, without a turn of the connection's task, and however few may
// wait for a peer that is slow.
func TestPushesOfOnePassGoOutTogether(t *testing.T) {
	for _, backlog := range []int{0, 5, -1} {
		w := newWorld(t)
		turns := 0
		a := &actor{turn: func(_ *actor, t *act.Task) act.Directive { turns++; t.Waker(); return act.Wait }}
		v := &websocket.Server{Handler: a.handler, Options: websocket.Options{Backlog: backlog}}
		c := w.dial(v, listener.Limits{})
		servertest.Step(t, w.S)
		w.OS.Forget()
		before := turns
		for n := range 20 {
			require.NoError(t, a.conn.Scheduler().Post(func(*act.Scheduler) { require.NoError(t, a.conn.Push(note(n))) }))
		}
		c.hear(0, 20)
		require.Equal(t, 1, w.OS.Count("send"))
		require.Equal(t, before, turns)
		for range 5 { // with a Send between them
			w.Turn(func(*act.Task) {
				require.NoError(t, a.conn.Push(note(0)))
				require.NoError(t, a.conn.Send(websocket.Text, []byte("1")))
				require.NoError(t, a.conn.Push(note(2)))
				require.NoError(t, a.conn.Push(note(3)))
			})
			c.hear(0, 4)
		}
		require.Equal(t, 6, w.OS.Count("send"))
	}
}

// How many messages wait for a peer that is slow, and what becomes of one more. TestWorldServer shows what the peer gets.
func TestOneMessageTooMany(t *testing.T) {
	for backlog, waits := range map[int]int{5: 5, 0: 64, -1: 0} {
		w, a, _ := slow(t, websocket.Options{Backlog: backlog})
		w.Turn(func(*act.Task) {
			for n := range waits {
				require.NoError(t, a.conn.PushOrDrop(note(n)))
			}
			require.Implements(t, (*act.Blocked)(nil), a.conn.Push(note(waits)))
			require.Zero(t, a.conn.Dropped())
			require.NoError(t, a.conn.PushOrDrop(note(waits)))
			require.Equal(t, 1, a.conn.Dropped())
		})
	}
}

// What was broken: an answer that waited was dropped for a later message.
func TestAnAnswerIsNotDropped(t *testing.T) {
	w, a, c := slow(t, websocket.Options{Backlog: 2})
	w.Turn(func(*act.Task) {
		require.NoError(t, a.conn.PushOrDrop(note(0)))
		require.NoError(t, a.conn.Push(note(1)))
		require.NoError(t, a.conn.PushOrDrop(note(2)), "for 0")
		require.Implements(t, (*act.Blocked)(nil), a.conn.Push(note(3)))
		require.NoError(t, a.conn.PushOrDrop(note(2)), "for 2")
		require.Equal(t, 2, a.conn.Dropped())
	})
	require.Equal(t, fmt.Sprintf("binary of %d", full), c.next())
	c.hear(1, 3)
}

// What a page of package inspect says of a client and a server, and what they count.
func TestWhatConnectionsOfWebSocketSay(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var here, there *websocket.Conn
	receives := func(kept **websocket.Conn, c *websocket.Conn) act.Action {
		*kept = c
		return act.Func(func(t *act.Task) act.Directive {
			_, err := c.Receive()
			return listener.Next(t, err)
		})
	}
	sockets := &websocket.Server{Handler: func(c *websocket.Conn, _ *httpd.Request) act.Action { return receives(&there, c) }}
	v := &service.Listener{Address: "127.0.0.1:0", Handler: (&httpd.Server{Handler: sockets.Serve}).Serve}
	require.NoError(t, v.Setup(l.S))
	accepts := "connections to " + v.Addr().String()

	silent, err := net.Listen("tcp", "127.0.0.1:0") // does not answer the handshake
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	mute := &websocket.Client{URL: "ws://" + silent.Addr().String(), Handler: func(*websocket.Conn) act.Action { return nil }}
	l.S.Spawn(mute.Dial())
	l.UntilSaid(accepts, "the answer to a handshake of WebSocket", "input from "+silent.Addr().String())

	client := &websocket.Client{URL: "ws://" + v.Addr().String(),
		Handler: func(c *websocket.Conn) act.Action { return receives(&here, c) }}
	l.S.Spawn(client.Dial())
	says := func(is func(what string) bool) bool { return slices.ContainsFunc(servertest.Said(l.S)[3:], is) }
	l.Until("both wait", func() bool {
		return there != nil && says(func(what string) bool { return strings.HasPrefix(what, "input from ") })
	})
	l.Turn(func(*act.Task) {
		require.NoError(l.T, here.Send(websocket.Text, []byte("hello")))
		require.NoError(l.T, there.Push(websocket.Prepare(websocket.Text, []byte("hello"))))
	})
	l.Until("both have one", func() bool { return servertest.CountsOf(l.S)["websocket_received_total"] == 2 })
	require.EqualValues(t, 2, servertest.CountsOf(l.S)["websocket_sent_total"])
}

// RFC 8441 5: over HTTP/2 a handshake has no key, and the stream is the connection, whose waits are those of its session.
func TestAConnectionOverHTTP2(t *testing.T) {
	l := servertest.New(t, act.Config{})
	web := &httpd.Server{Handler: (&websocket.Server{Handler: echo(new(error))}).Serve}
	tcp := &service.Listener{Address: "127.0.0.1:0", Handler: web.Serve}
	require.NoError(t, tcp.Setup(l.S))
	c := servertest.Dial(t, tcp.Addr())
	var head []byte
	for _, f := range strings.Fields(":method=CONNECT :scheme=http :authority=a :path=/ :protocol=websocket sec-websocket-version=13") {
		name, value, _ := strings.Cut(f, "=")
		head = http2.AppendField(head, name, value)
	}
	const hello = "\x81\x85\x00\x00\x00\x00hello" // masked with zeros
	out := http2.AppendHeaders(http2.AppendSettings([]byte(http2.Preface)), 1, head, false)
	out = http2.Header{Length: uint32(len(hello)), Type: http2.Data, Stream: 1}.Append(out)
	servertest.Send(t, c, string(out)+hello)
	l.Until("it echoes", func() bool { return servertest.CountsOf(l.S)["websocket_sent_total"] == 1 })
	input := "input from " + c.LocalAddr().String()
	l.UntilSaid("connections to "+tcp.Addr().String(), "its streams: 1", input, input)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(servertest.Timeout)))
	in, p := "", make([]byte, 1000)
	for !strings.HasSuffix(in, "\x81\x05hello") {
		n, err := c.Read(p)
		require.NoError(t, err)
		in += string(p[:n])
	}
	require.NotContains(t, in, "sec-websocket-accept")
}
