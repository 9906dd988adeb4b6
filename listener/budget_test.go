package listener_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/servertest"
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

	l.Turn(func(*act.Task) { c.Hold(100) })
	require.Equal(t, 100, b.Total())
	l.Turn(func(*act.Task) { c.Hold(-30) })
	require.Equal(t, 70, b.Total())
	require.Panics(t, func() { c.Hold(-71) })
}

// What is held for a connection is given back with it, and nothing is held for one that is closed.
func TestNothingIsHeldForAClosedConnection(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	l.Turn(func(*act.Task) { c.Hold(100) })
	l.Turn(func(*act.Task) {
		c.Abort()
		require.Zero(t, budget.Of(l.S).Total())
		c.Hold(5)
	})
	require.Zero(t, budget.Of(l.S).Total())
}

// byHand is a clock.
type byHand struct{ now time.Duration }

func (c *byHand) Monotonic() time.Duration { return c.now }
func (c *byHand) Wall() time.Time          { return time.Unix(0, 0) }

// In a pause a connection that holds nothing is not received from, without spinning, until its turn comes. One that holds
// something is.
func TestReadingPauses(t *testing.T) {
	clock := &byHand{time.Hour}
	l := servertest.New(t, act.Config{Clock: clock})
	require.NoError(t, listener.Budget(1<<20)(l.S))
	large, _ := l.Conn("tcp", listener.Limits{})
	holder, other := l.Conn("tcp", listener.Limits{})
	l.Turn(func(*act.Task) {
		large.Hold(1 << 20)
		holder.Hold(1)
	})
	require.True(t, budget.Of(l.S).Paused())

	var conns [2]*listener.Conn
	var got [2]string
	var ends [2]error
	turns := 0
	for i := range conns {
		c, peer := l.Conn("tcp", listener.Limits{})
		conns[i] = c
		_, err := peer.Write([]byte("hello"))
		require.NoError(t, err)
		l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
			turns++
			in, err := c.Peek(1)
			got[i] += string(in)
			if c.Discard(len(in)); err == net.ErrClosed {
				ends[i] = err
				return act.Done
			}
			return listener.Next(t, err)
		}))
	}
	_, err := other.Write([]byte("hello"))
	require.NoError(t, err)
	l.Until("the holder is received from", func() (there bool) {
		l.Turn(func(*act.Task) { _, err := holder.Peek(1); there = err == nil })
		return there
	})
	l.For(10 * time.Millisecond)
	require.LessOrEqual(t, turns, 4, "they wait")
	require.Empty(t, got[0]+got[1])

	l.Turn(func(*act.Task) { conns[0].Abort() })
	l.Until("the end of one that waits", func() bool { return ends[0] == net.ErrClosed })
	clock.now += 100 * time.Millisecond
	l.Until("the turn of the other", func() bool { return got[1] == "hello" })
	require.True(t, budget.Of(l.S).Paused())

	clock.now += time.Second
	l.Until("the worst is shed", func() bool { return !budget.Of(l.S).Paused() })
	_, err = large.Write(nil)
	require.Equal(t, net.ErrClosed, err)
	_, err = holder.Write(nil)
	require.NoError(t, err)
}
