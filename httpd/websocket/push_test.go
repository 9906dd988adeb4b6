package websocket_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/websocket"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

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
