package listener_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

func TestCallsAfterCloseReturnErrClosed(t *testing.T) {
	for name, end := range map[string]func(*listener.Conn){
		"Close": func(c *listener.Conn) { _ = c.Close() },
		"Abort": (*listener.Conn).Abort,
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
			servertest.Send(t, peer, "unread")
			readable(l, c, 6)
			require.Same(t, l.S, c.Scheduler())
			require.Equal(t, peer.LocalAddr().String(), c.RemoteAddr().String())
			require.Equal(t, peer.RemoteAddr().String(), c.LocalAddr().String())
			var earlier error
			l.Turn(func(*act.Task) { _, earlier = c.Peek(7) })
			l.Turn(func(task *act.Task) {
				end(c)
				_, err := c.Peek(1)
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Peek(0)
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Read(make([]byte, 1))
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Read(nil)
				require.Equal(t, net.ErrClosed, err)
				_, err = c.Write([]byte("x"))
				require.Equal(t, net.ErrClosed, err)
				_, err = c.WriteString("x")
				require.Equal(t, net.ErrClosed, err)
				require.Equal(t, net.ErrClosed, c.Flush())
				require.Equal(t, net.ErrClosed, c.CloseWrite())
				require.Equal(t, net.ErrClosed, c.SetDeadline(time.Now()))
				require.Equal(t, net.ErrClosed, c.SetReadDeadline(time.Now()))
				require.Equal(t, net.ErrClosed, c.SetWriteDeadline(time.Now()))
				require.Zero(t, c.Buffered())
				require.Zero(t, c.Queued())
				require.Nil(t, c.LocalAddr())
				if name == "Abort" {
					require.Equal(t, peer.LocalAddr().String(), c.RemoteAddr().String(), "for a log")
				} else {
					require.Nil(t, c.RemoteAddr())
				}
				require.NoError(t, c.Close(), "a second one does nothing")
				c.Abort()
				require.Equal(t, act.Wait, listener.Next(task, earlier), "and a task that is armed too late is woken")
			})
			o := spawn(l.S, act.Func(func(task *act.Task) act.Directive {
				if earlier != nil {
					d := listener.Next(task, earlier)
					earlier = nil
					return d
				}
				return act.Done
			}))
			require.Equal(t, act.Done, o.over(l))
			l.Until("nothing lingers", func() bool { return l.OS.Count("close")+l.OS.Count("reset") == 1 })
			require.Same(t, l.S, c.Scheduler())
		})
	}
}

func TestCloseReturnsAtOnceAndDeliversWhatWasWritten(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	servertest.Send(t, peer, "this is not read")
	l.Turn(func(*act.Task) {
		_, err := c.WriteString("goodbye")
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
	servertest.Expect(t, peer, "goodbye")
	servertest.ExpectEOF(t, peer)
	servertest.Send(t, peer, "nor this")
	require.NoError(t, peer.Close())
	require.NoError(t, l.S.Run())
	require.Zero(t, l.OS.Count("reset"))
}

func TestAbortThrowsAwayWhatWasNotSent(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	l.Turn(func(*act.Task) {
		_, err := c.WriteString("goodbye")
		require.NoError(t, err)
		c.Abort()
	})
	n, err := io.Copy(io.Discard, peer)
	require.Error(t, err)
	require.Zero(t, n)
	require.NoError(t, l.S.Run())
}

// Two tasks share a connection, as with goroutines: one reads, one writes. The one that closes it wakes the other.
func TestCloseWakesTheOtherTaskOfAConnection(t *testing.T) {
	for _, name := range []string{"the reader closes", "the writer closes"} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("unix", listener.Limits{High: 10_000, Linger: time.Millisecond})
			got, part, stop := 0, make([]byte, 10_000), false
			reader := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
				in, err := c.Peek(1)
				if err != nil {
					return listener.Next(t, err)
				}
				got += len(in)
				c.Discard(len(in))
				if string(in) == "stop" {
					_ = c.Close()
					return act.Done
				}
				return act.Yield
			}))
			writer := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
				if stop {
					_ = c.Close()
					return act.Done
				}
				_, err := c.Write(part)
				return listener.Next(t, err)
			}))
			servertest.Send(t, peer, "hello")
			l.Until("one waits for input, the other for room", func() bool { return got == 5 && c.Queued() >= 10_000 })
			turns := reader.turns + writer.turns
			l.For(5 * time.Millisecond)
			require.Equal(t, turns, reader.turns+writer.turns)
			if name == "the reader closes" {
				servertest.Send(t, peer, "stop")
				require.Equal(t, act.Failed, writer.over(l))
				require.Equal(t, net.ErrClosed, writer.err)
				require.Equal(t, act.Done, reader.over(l))
			} else {
				stop = true
				go func() { _, _ = io.Copy(io.Discard, peer) }()
				require.Equal(t, act.Done, writer.over(l))
				require.Equal(t, act.Failed, reader.over(l))
				require.Equal(t, net.ErrClosed, reader.err)
			}
			require.NoError(t, l.S.Run())
		})
	}
}

func TestCloseInAnothersTurnAndAtItsEnd(t *testing.T) {
	for name, at := range map[string]func(l *servertest.Stepped, end func()){
		"in its turn": func(_ *servertest.Stepped, end func()) { end() },
		"at its end":  func(l *servertest.Stepped, end func()) { l.S.AtTurnEnd(servertest.TurnEnd(end)) },
		"behind its end": func(l *servertest.Stepped, end func()) {
			l.S.AtTurnEnd(servertest.TurnEnd(func() { l.S.AtTurnEnd(servertest.TurnEnd(end)) }))
		},
		"before its begin": func(l *servertest.Stepped, end func()) { end() },
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			a, peerA := l.Conn("tcp", listener.Limits{})
			b, peerB := l.Conn("tcp", listener.Limits{})
			servertest.Send(t, peerA, "unread")
			readable(l, a, 6)
			l.Turn(func(*act.Task) {
				if name == "before its begin" {
					at(l, func() { require.NoError(t, a.Close()) })
				}
				if in, err := a.Peek(1); err == nil {
					_, err = b.Write(in)
					require.NoError(t, err)
					a.Discard(2)
					_, err = a.WriteString("to a")
					require.NoError(t, err)
				}
				if name != "before its begin" {
					at(l, func() { require.NoError(t, a.Close()) })
				}
			})
			if name != "before its begin" {
				servertest.Expect(t, peerB, "unread")
				servertest.Expect(t, peerA, "to a")
			}
			servertest.ExpectEOF(t, peerA)
			require.NoError(t, peerA.Close())
			require.NoError(t, l.S.Run())
			for range 3 { // what a had is used by others, once
				c, peerC := l.Conn("tcp", listener.Limits{})
				l.Turn(func(*act.Task) {
					_, _ = b.WriteString("to b")
					_, _ = c.WriteString("to c")
				})
				servertest.Expect(t, peerB, "to b")
				servertest.Expect(t, peerC, "to c")
				c.Abort()
			}
			b.Abort()
		})
	}
}

// Memory does not grow with the connections that were: what is kept for the next ones is bounded.
func TestKeptBuffersAreBounded(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var conns []*listener.Conn
	for range 100 {
		c, peer := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
		servertest.Send(t, peer, "x")
		conns = append(conns, c)
	}
	l.Until("all have input", func() bool {
		n := 0
		l.Turn(func(*act.Task) {
			for _, c := range conns {
				_, _ = c.Peek(1)
				n += c.Buffered()
			}
		})
		return n == len(conns)
	})
	l.Turn(func(*act.Task) {
		for _, c := range conns {
			_, _ = c.WriteString("y")
			require.NoError(t, c.Close())
		}
	})
	buffers, busy := listener.Kept(l.S)
	require.LessOrEqual(t, buffers, 64)
	require.LessOrEqual(t, busy, 64)
	require.NoError(t, l.S.Run())
}

func TestCloseReturnsTheErrorOfTheLastSend(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	l.OS.Fail = servertest.Failing("send", syscall.EPIPE)
	l.Turn(func(*act.Task) {
		_, err := c.WriteString("goodbye")
		require.NoError(t, err)
		require.Equal(t, syscall.EPIPE, c.Close())
		require.NoError(t, c.Close(), "it is closed nevertheless")
	})
	require.Equal(t, 1, l.OS.Count("reset"), "and the peer does not take it for an orderly end")
	require.NoError(t, l.S.Run())
}
