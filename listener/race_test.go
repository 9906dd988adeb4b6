//go:build race

package listener_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

var poisoned = bytes.Repeat([]byte{0xDB}, 5)

func TestALoanIsOverwrittenAfterItsTurn(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	for name, take := range map[string]bool{"what was taken": true, "what stays unread": false} {
		servertest.Send(t, peer, "hello")
		var loan []byte
		l.Until("a loan", func() bool {
			l.Turn(func(*act.Task) { // all of it in one piece, so it is the engine's memory
				if loan, _ = c.Peek(1); take {
					c.Discard(len(loan))
				}
			})
			return len(loan) > 0
		})
		require.Equal(t, poisoned, loan, name)
		l.Turn(func(*act.Task) { c.Discard(c.Buffered()) })
	}
}

func TestALoanOfKeptBytesIsOverwrittenAfterDiscard(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "hello")
	readable(l, c, 5)
	var loan []byte
	l.Turn(func(*act.Task) {
		loan, _ = c.Peek(5)
		require.Equal(t, "hello", string(loan))
		c.Discard(5)
	})
	require.Equal(t, poisoned, loan)
}
