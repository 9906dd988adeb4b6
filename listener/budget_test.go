package listener_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
)

// What is unread over turns, what is queued and what is held for a connection counts, and is given back.
func TestWhatAConnectionHoldsIsCounted(t *testing.T) {
	l := servertest.New(t, act.Config{})
	b := budget.Of(l.S)
	c, peer := l.Conn("tcp", listener.Limits{})
	_, err := peer.Write(make([]byte, 5000))
	require.NoError(t, err)
	l.Until("5000 bytes are unread", func() bool {
		l.Turn(func(*act.Task) { _, _ = c.Peek(5000) })
		return c.Buffered() == 5000
	})
	require.GreaterOrEqual(t, b.Total(), 5000)
	require.LessOrEqual(t, b.Total(), 2*5000+4<<10)
	l.Turn(func(*act.Task) { c.Discard(5000) })
	require.Zero(t, b.Total())

	filled := 0
	l.Until("output is queued", func() bool {
		l.Turn(func(*act.Task) {
			n, _ := c.Write(make([]byte, 64<<10))
			filled += n
		})
		return c.Queued() > 16<<10
	})
	require.GreaterOrEqual(t, b.Total(), c.Queued())
	go func() { _, _ = io.CopyN(io.Discard, peer, int64(filled)) }()
	l.Until("all is taken", func() bool { return c.Queued() == 0 })
	require.Zero(t, b.Total())

	var one, other listener.Meter
	l.Turn(func(*act.Task) { one.Set(c, 100) })
	require.Equal(t, 100, b.Total())
	l.Turn(func(*act.Task) { other.Set(c, 5) })
	l.Turn(func(*act.Task) { one.Set(c, 70) })
	require.Equal(t, 75, b.Total())
}

// What is held for a connection is given back with it, and nothing is held for one that is closed.
func TestNothingIsHeldForAClosedConnection(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	var m listener.Meter
	l.Turn(func(*act.Task) { m.Set(c, 100) })
	l.Turn(func(*act.Task) {
		c.Abort()
		require.Zero(t, budget.Of(l.S).Total())
		m.Set(c, 5)
	})
	require.Zero(t, budget.Of(l.S).Total())
}
