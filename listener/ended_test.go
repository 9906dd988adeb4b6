package listener_test

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// endWatcher is a task that calls Ended in every turn, and waits for nothing else.
type endWatcher struct {
	c     *listener.Conn
	turns int
	half  bool
	err   error
	over  bool
}

func (m *endWatcher) Act(t *act.Task) act.Directive {
	m.turns++
	m.half, m.err = m.c.Ended(t)
	if m.err != nil || m.over {
		return act.Done
	}
	return act.Wait
}

// watchEnd spawns an endWatcher of c, whose end has not come.
func watchEnd(l *servertest.Stepped, c *listener.Conn) *endWatcher {
	l.T.Helper()
	m := &endWatcher{c: c}
	l.S.Spawn(m)
	m.quiet(l, 1)
	require.False(l.T, m.half)
	require.NoError(l.T, m.err)
	return m
}

// woken wants m to have its nth turn, and then no other.
func (m *endWatcher) woken(l *servertest.Stepped, n int) {
	l.T.Helper()
	l.Until("it is woken", func() bool { return m.turns >= n })
	m.quiet(l, n)
}

func (m *endWatcher) quiet(l *servertest.Stepped, n int) {
	l.T.Helper()
	l.For(10 * time.Millisecond)
	require.Equal(l.T, n, m.turns)
}

func TestATaskThatWaitsForTheEndIsWokenOnceAndNotByBytes(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn(network, listener.Limits{})
		servertest.Send(t, peer, "unread before, ")
		l.For(5 * time.Millisecond)
		m := watchEnd(l, c)
		for range 3 {
			servertest.Send(t, peer, "x")
			m.quiet(l, 1)
		}
		require.NoError(t, peer.(interface{ CloseWrite() error }).CloseWrite())
		m.woken(l, 2)
		require.True(t, m.half)
		require.NoError(t, m.err)
		require.Zero(t, l.OS.Count("receive"), "nothing is taken")
		require.True(t, listener.AtRest(c))

		l.Turn(func(*act.Task) {
			in, err := c.Peek(100)
			require.Error(t, err)
			require.Equal(t, "unread before, xxx", string(in))
			_, err = c.WriteString("the other way")
			require.NoError(t, err)
		})
		servertest.Expect(t, peer, "the other way")
		m.quiet(l, 2)
		c.Abort()
		m.woken(l, 3)
		require.Equal(t, net.ErrClosed, m.err)
	}
}

func TestAResetIsReportedAtOnceAndBehindAnEnd(t *testing.T) {
	for _, row := range []struct{ fin, queued bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn("tcp", listener.Limits{})
		servertest.Send(t, peer, "unread")
		for err := error(nil); row.queued && err == nil; {
			l.Turn(func(*act.Task) { _, err = c.Write(make([]byte, 64<<10)) })
		}
		m := watchEnd(l, c)
		turn := 2
		if row.fin {
			require.NoError(t, peer.(*net.TCPConn).CloseWrite())
			m.woken(l, turn)
			require.True(t, m.half)
			require.NoError(t, m.err)
			turn++
		}
		servertest.Reset(t, peer)
		m.woken(l, turn)
		require.Error(t, m.err)
		l.Turn(func(task *act.Task) {
			in, err := c.Peek(100)
			require.Equal(t, "unread", string(in), "it is still there")
			require.Equal(t, m.err, err)
			_, err = c.WriteString("x")
			require.Equal(t, m.err, err, "it is kept")
			_, err = c.Ended(task)
			require.Equal(t, m.err, err)
		})
		c.Abort()
	}
}

// A Unix peer that goes with something unread says so by an error.
func TestAUnixPeerThatHasNotReadAllIsAReset(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{})
	defer c.Abort()
	l.Turn(func(*act.Task) { _, _ = c.WriteString("never read") })
	m := watchEnd(l, c)
	require.NoError(t, peer.Close())
	m.woken(l, 2)
	require.Error(t, m.err)
}

func TestAnEndBeforeTheCallIsReturnedWithoutWaking(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(*testing.T, net.Conn)
		half bool
	}{
		"end":   {func(t *testing.T, peer net.Conn) { require.NoError(t, peer.Close()) }, true},
		"reset": {func(t *testing.T, peer net.Conn) { servertest.Reset(t, peer) }, false},
	} {
		for _, heard := range []bool{false, true} { // by a reader
			t.Run(name, func(t *testing.T) {
				l := servertest.New(t, act.Config{})
				c, peer := l.Conn("tcp", listener.Limits{})
				defer c.Abort()
				l.For(time.Millisecond)
				row.end(t, peer)
				l.For(5 * time.Millisecond)
				var said error
				if heard {
					l.Turn(func(*act.Task) { _, said = c.Peek(1) })
					require.Error(t, said)
				}
				m := &endWatcher{c: c}
				l.S.Spawn(m)
				m.woken(l, 1)
				if row.half {
					require.True(t, m.half)
					require.NoError(t, m.err)
					return
				}
				require.Error(t, m.err)
				_, again := c.Peek(1)
				require.Equal(t, m.err, again)
				if heard {
					require.Equal(t, said, m.err)
				}
			})
		}
	}
}

// Both sides have ended, which the system reports as it does an error.
func TestAnOrderlyEndOfBothSidesIsNoError(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		l := servertest.New(t, act.Config{})
		c, peer := l.Conn(network, listener.Limits{})
		m := watchEnd(l, c)
		l.Turn(func(*act.Task) { require.NoError(t, c.CloseWrite()) })
		require.NoError(t, peer.Close())
		m.woken(l, 2)
		require.True(t, m.half)
		require.NoError(t, m.err)
		l.Turn(func(*act.Task) { require.NoError(t, c.Close()) })
		m.woken(l, 3)
		require.Equal(t, net.ErrClosed, m.err)
	}
}

// There is one place for both kinds of waiting, and the later counts.
func TestWaitingToReadAndWaitingForTheEndReplaceEachOther(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	m := watchEnd(l, c)
	reads := 0
	reader := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		reads++
		in, err := c.Peek(1)
		c.Discard(len(in))
		if reads == 2 {
			return act.Done
		}
		return listener.Next(t, err)
	})).begun(l)
	servertest.Send(t, peer, "x")
	reader.over(l)
	m.quiet(l, 1)

	turns := 0
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive { // asks for both: the later
		if turns++; turns == 1 {
			_, err := c.Peek(1)
			listener.Next(t, err)
			_, err = c.Ended(t)
			if err == nil {
				return act.Wait
			}
		}
		return act.Done
	}))
	l.For(time.Millisecond)
	servertest.Send(t, peer, "y")
	l.For(5 * time.Millisecond)
	require.Equal(t, 1, turns)
	require.NoError(t, peer.Close())
	l.Until("the end", func() bool { return turns == 2 })
	m.over = true
	c.Abort()
}

func TestAStreamWithoutACloseNotifierIsNotWaitedFor(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp", nil)
	c := listener.NewConn(l.S, struct{ monitor.Stream }{stream}, listener.Limits{})
	defer c.Abort()
	l.Turn(func(task *act.Task) {
		require.NoError(t, peer.Close())
		half, err := c.Ended(task)
		require.False(t, half)
		require.NoError(t, err)
	})
}

func TestAskingForTheEndDoesNotAllocate(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	l.Turn(func(task *act.Task) {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.Ended(task) }))
	})
}
