package listener_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// The tasks are others than the one that owns the connection, which waits for input.
func TestWhatOthersPushGoesOutWithTheirTurns(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	owner := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		_, err := c.Peek(1)
		return c.Next(t, err)
	})).begun(l)
	l.OS.Forget()
	l.Turn(func(*act.Task) {
		require.NoError(t, c.Push([]byte("one ")))
		require.NoError(t, c.Push([]byte("two ")))
		require.Zero(t, l.OS.Count("send"))
	})
	require.Equal(t, 1, l.OS.Count("send"))
	posted := 0
	for range 20 {
		require.NoError(t, l.S.Post(func(*act.Scheduler) {
			require.NoError(t, c.Push([]byte("and ")))
			posted++
		}))
	}
	l.Until("all are called", func() bool { return posted == 20 })
	require.Equal(t, 2, l.OS.Count("send"), "those of one pass together")
	servertest.Expect(t, peer, "one two "+string(bytes.Repeat([]byte("and "), 20)))
	require.Equal(t, 1, owner.turns)
	require.NoError(t, peer.Close())
	require.Equal(t, act.Done, owner.over(l))
	c.Abort()
}

// fill writes until nothing more is taken.
func fill(l *servertest.Stepped, c *listener.Conn) {
	l.Turn(func(*act.Task) {
		for {
			if _, err := c.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
	})
}

func TestARejectedPushWaitsForItsRoom(t *testing.T) {
	const high, low = 20_000, 5_000
	for _, size := range []int{1, high - low, high - low + 1, high} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("unix", listener.Limits{High: high, Low: low})
		fill(l, c)
		l.OS.Most = 1000 // so that room comes little by little
		o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
			if err := c.Push(make([]byte, size)); err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})).begun(l)
		l.For(time.Millisecond)
		require.Equal(t, 1, o.turns, "it waits")
		go func() { _, _ = io.Copy(io.Discard, peer) }()
		l.Until("the push", func() bool {
			_ = c.Flush()
			return o.directive == act.Done
		})
		require.Equal(t, 2, o.turns, "woken when there is room for %d bytes", size)
		c.Abort()
	}
}

func TestPushSaysWhyItTookNothing(t *testing.T) {
	l, clock := virtual(t)
	c, peer := l.Conn("tcp", listener.Limits{High: 1000, Overflow: listener.Drop})
	l.Turn(func(*act.Task) {
		require.NoError(t, c.Push(nil))
		require.Equal(t, listener.ErrTooLong, c.Push(make([]byte, 1001)), "there would never be room")
		require.NoError(t, c.Push([]byte("taken")))
	})
	require.NoError(t, c.SetWriteDeadline(start.Add(2*time.Second)))
	pass(l, clock, 2*time.Second)
	require.Equal(t, os.ErrDeadlineExceeded, c.Push([]byte("late")))
	require.NoError(t, c.SetWriteDeadline(time.Time{}))
	require.NoError(t, c.CloseWrite())
	require.EqualError(t, c.Push([]byte("later")), "monitor: the write side was closed")
	require.Zero(t, c.Dropped())
	servertest.Expect(t, peer, "taken")
	servertest.ExpectEOF(t, peer)
	c.Abort()
	require.Equal(t, net.ErrClosed, c.Push(nil))
}

func TestAPushDoesNotAllocate(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	small, large := make([]byte, 100), make([]byte, listener.Gathered+1)
	over := false
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		_, _ = c.Push(small), c.Push(large)
		if over {
			return act.Done
		}
		return act.Yield
	})).begun(l)
	require.Zero(t, testing.AllocsPerRun(200, func() { _, _ = l.S.Step(1) }))
	over = true
	o.over(l)
}

// What was broken: the count was gone when a service could have logged it.
func TestDroppedIsKeptAfterTheEnd(t *testing.T) {
	for name, end := range map[string]func(*listener.Conn){"Close": func(c *listener.Conn) { _ = c.Close() }, "Abort": (*listener.Conn).Abort} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("tcp", listener.Limits{High: 1000, Overflow: listener.Drop, SendBuffer: 4 << 10})
		l.Turn(func(*act.Task) {
			for c.Dropped() < 3 {
				require.NoError(t, c.Push(make([]byte, 1000)))
			}
			end(c)
			require.Equal(t, 3, c.Dropped(), name)
		})
		require.Equal(t, 3, c.Dropped(), name)
		require.Zero(t, c.Buffered())
		require.Same(t, l.S, c.Scheduler())
		require.NoError(t, peer.Close())
	}
}
