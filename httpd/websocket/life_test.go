package websocket_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/listener"
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
