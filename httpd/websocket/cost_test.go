package websocket_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
)

// What comes in one piece and is answered in one turn costs no allocation, and neither does a push that there is room for.
func TestAMessageAllocatesNothing(t *testing.T) {
	tier.NoRace(t, "counts allocations")
	note := websocket.Prepare(websocket.Text, make([]byte, 1000))
	pushes := func(c *websocket.Conn, _ *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			_, err := c.Receive()
			if err == nil {
				err = c.Push(note)
			}
			return c.Next(t, err)
		})
	}
	inPieces := func(c *websocket.Conn, _ *httpd.Request) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			m, _, err := c.ReceivePiece()
			if err == nil {
				err = c.Send(m.Type, m.Data)
			}
			return c.Next(t, err)
		})
	}
	for name, row := range map[string]struct {
		handler func(*websocket.Conn, *httpd.Request) act.Action
		says    string
	}{
		"an echo":           {echo(nil), text("hello")},
		"many":              {echo(nil), text("hello") + text("") + text(string(make([]byte, 1000)))},
		"a ping":            {echo(nil), ping("hello")},
		"a push":            {pushes, text("hello")},
		"pieces of a frame": {inPieces, begin("hel") + more("l") + last("o")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := &servertest.Replay{Says: []byte(handshake + "\r\n")}
			v := &websocket.Server{Handler: row.handler}
			w.S.Spawn((&httpd.Server{Handler: v.Serve}).Serve(listener.NewConn(w.S, m, listener.Limits{})))
			once := func() {
				m.Again()
				for n := 1; n > 0; {
					n, _ = w.S.Step(10)
				}
			}
			once()
			m.Says, m.Sent = []byte(row.says), 0
			require.Zero(t, testing.AllocsPerRun(200, once))
			require.Greater(t, m.Sent, 200*5)
		})
	}
}

// What a connection needs only now and then is given back.
func TestAConnIsAtRestAgain(t *testing.T) {
	behind := func(t *testing.T, a *actor) { require.NoError(t, a.conn.Send(websocket.Binary, make([]byte, full))) }
	for name, row := range map[string]struct {
		turn func(*testing.T, *actor)
		says string
		hear []string
		then string
	}{
		"a message that there was no room for":    {behind, "", nil, ""},
		"a ping that there was no room to answer": {behind, ping("a") + ping("b"), []string{`pong "b"`}, ""},
		"pushes that there was no room for": {func(t *testing.T, a *actor) {
			behind(t, a)
			for n := range 3 {
				require.NoError(t, a.conn.Push(note(n)))
			}
		}, "", []string{`text "0"`, `text "1"`, `text "2"`}, ""},
		"a message in parts": {func(*testing.T, *actor) {}, begin("a") + more("b"), nil, last("c")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := &actor{turn: func(a *actor, t *act.Task) act.Directive {
				_, err := a.conn.Receive()
				return a.conn.Next(t, err)
			}}
			c := w.dial(&websocket.Server{Handler: a.handler}, listener.Limits{})
			require.True(t, a.conn.AtRest())
			w.Turn(func(*act.Task) { row.turn(t, a) })
			c.send(row.says)
			require.False(t, a.conn.AtRest())
			if row.then == "" {
				require.Equal(t, fmt.Sprintf("binary of %d", full), c.next())
			}
			for _, f := range row.hear {
				require.Equal(t, f, c.next())
			}
			c.send(row.then)
			w.Until("it is at rest", a.conn.AtRest)
		})
	}
}
