package listener_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// reads is an action that reads at most so many bytes a turn, and answers with the connection's own Next.
func reads(c *listener.Conn, most int, got *[]byte) act.Func {
	return func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err == nil {
			in = in[:min(most, len(in))]
			*got = append(*got, in...)
			c.Discard(len(in))
		}
		return c.Next(t, err)
	}
}

func TestConnNextSavesATurn(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	var got []byte
	o := spawn(l.S, reads(c, 100, &got)).begun(l)
	for n := 1; n <= 10; n++ {
		servertest.Send(t, peer, "0123456789")
		l.Until("it is read", func() bool { return len(got) == 10*n && o.directive == act.Wait })
		require.Equal(t, 1+n*l.OS.Receives(), o.turns, "one for each message, where one receive is enough")
	}
}

func TestConnNextAfterTheDeadlineAndAfterTheEnd(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	l.Turn(func(task *act.Task) {
		require.Equal(t, act.Wait, c.Next(task, nil))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(-time.Second)))
		require.Equal(t, act.Yield, c.Next(task, nil), "the next Peek says so")
		require.Equal(t, act.Done, c.Next(task, io.EOF))
		require.Equal(t, act.Failed, c.Next(task, io.ErrNoProgress))
		c.Abort()
		require.Equal(t, act.Yield, c.Next(task, nil), "the next call says net.ErrClosed")
	})
}
