package listener_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// over is an action on a connection that says only what the connection says.
type over struct {
	act.Func
	*listener.Conn
}

func TestWhatAConnectionIsAwaitedFor(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	from := peer.LocalAddr().String()

	stage := "input"
	var w act.Waker
	l.S.Spawn(over{func(task *act.Task) act.Directive {
		w = task.Waker()
		switch stage {
		case "input":
			_, err := c.Peek(1)
			return c.Next(task, err)
		case "a part":
			_, err := c.Peek(100)
			return c.Next(task, err)
		case "the end":
			_, err := c.Ended(task)
			require.NoError(t, err)
		case "room":
			_, err := c.Write(make([]byte, 1<<20))
			for err == nil {
				_, err = c.Write(make([]byte, 1<<20))
			}
			return c.Next(task, err)
		}
		return act.Wait
	}, c})
	l.UntilSaid("input from " + from)
	stage = "a part"
	servertest.Send(t, peer, "hello")
	l.Until("the bytes", func() bool { return c.Buffered() == 5 })
	l.UntilSaid("input from " + from)
	stage = "the end"
	w.Wake()
	l.UntilSaid("the end of " + from)
	stage = "room"
	w.Wake()
	l.Until("a queue", func() bool { return c.Queued() > 0 })
	l.UntilSaid(fmt.Sprintf("room: %d bytes queued for %s", c.Queued(), from))
	counts := servertest.CountsOf(l.S)
	require.EqualValues(t, 1, counts["connections"])
	require.NotZero(t, counts["sends_short_total"])
	require.NotZero(t, counts["waits_for_room_total"])
	require.EqualValues(t, 5, counts["received_bytes_total"])
	require.Equal(t, uint64(l.OS.Bytes("send")), counts["sent_bytes_total"])
	c.Abort()
	require.Empty(t, servertest.Said(l.S))
	stage = "nothing"
	require.EqualValues(t, 1, servertest.CountsOf(l.S)["connections_aborted_total"])
	require.Zero(t, servertest.CountsOf(l.S)["connections"])
}
