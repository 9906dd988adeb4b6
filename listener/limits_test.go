package listener_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestTheZeroLimitsAreTheDocumentedOnes(t *testing.T) {
	want := listener.Limits{Read: 64 << 10, High: 64 << 10, Low: 16 << 10, Linger: 5 * time.Second, Conns: 1}
	require.Equal(t, want, resolved(t, listener.Limits{}))
	require.Equal(t, 250, resolved(t, listener.Limits{High: 1000}).Low, "a quarter")
	require.Equal(t, 0, resolved(t, listener.Limits{High: 1}).Low, "a quarter")
	all := listener.Limits{Read: 1, High: 3, Low: 2, Linger: 1, ReceiveBuffer: 1, SendBuffer: 1, Conns: 2}
	require.Equal(t, all, resolved(t, all))
}

func resolved(t *testing.T, l listener.Limits) listener.Limits {
	l, err := l.Resolved()
	require.NoError(t, err)
	return l
}

func TestConnectionsOfOneSchedulerHaveLimitsOfTheirOwn(t *testing.T) {
	l := servertest.New(t, act.Config{})
	for _, limits := range []listener.Limits{{Read: 10}, {Read: 1000}, {}, {Read: 10}} {
		c, _ := l.Conn("tcp", limits)
		most := resolved(t, limits).Read
		l.Turn(func(*act.Task) {
			_, err := c.Peek(most)
			require.Implements(t, (*act.Blocked)(nil), err)
			_, err = c.Peek(most + 1)
			require.Equal(t, listener.ErrTooLong, err)
		})
		c.Abort()
	}
}

// Buffers are kept for other connections, but only small ones.
func TestABufferThatHasGrownIsNotKept(t *testing.T) {
	const n = 20_000
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	servertest.Send(t, peer, "x")
	readable(l, c, 1)
	servertest.Send(t, peer, string(make([]byte, n-1)))
	readable(l, c, n)
	require.Greater(t, listener.Memory(c), listener.Gathered)
	l.Turn(func(*act.Task) { c.Discard(n) })
	require.True(t, listener.AtRest(c))
	require.LessOrEqual(t, listener.LargestKept(l.S), listener.Gathered)
}
