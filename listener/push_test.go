package listener_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// message returns a message of n bytes with a number.
func message(number, n int) []byte {
	return binary.BigEndian.AppendUint32(bytes.Repeat([]byte{byte(number)}, n-4), uint32(number))
}

// A peer reads now and then. It gets every message that Push has taken, whole, and no byte of another.
func TestPushTakesAllOrNothing(t *testing.T) {
	for _, overflow := range []listener.Overflow{listener.Block, listener.Drop} {
		for _, high := range []int{200, 3000, 10_000, 64 << 10} {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("unix", listener.Limits{High: high, Overflow: overflow})
			l.OS.Most = 5000 // a part of some messages
			d := rand.New(rand.NewPCG(1, uint64(high)))
			var taken, got bytes.Buffer
			dropped, refused := 0, 0
			raw, err := peer.(syscall.Conn).SyscallConn()
			require.NoError(t, err)
			read := func(n int) { // without blocking
				p := make([]byte, n)
				require.NoError(t, raw.Read(func(fd uintptr) bool {
					n, _ = syscall.Read(int(fd), p)
					got.Write(p[:max(0, n)])
					return true
				}))
			}
			for n := range 3000 {
				l.Turn(func(*act.Task) {
					for range d.IntN(5) {
						m := message(n, 4+d.IntN(min(high, 8000)-3))
						switch err := c.Push(m); {
						case err != nil:
							require.Implements(t, (*act.Blocked)(nil), err)
							refused++
						case c.Dropped() > dropped:
							dropped++
						default:
							taken.Write(m)
						}
						require.LessOrEqual(t, c.Queued(), high+listener.Gathered)
					}
				})
				if d.IntN(20) == 0 {
					read(d.IntN(20 * min(high, 8000)))
				}
			}
			require.Equal(t, overflow == listener.Drop, dropped > 0)
			require.Equal(t, overflow == listener.Block, refused > 0)
			require.Equal(t, dropped, c.Dropped())
			require.NoError(t, c.CloseWrite())
			l.Until("all is sent", func() bool { read(1 << 20); return c.Queued() == 0 })
			_, err = io.Copy(&got, peer)
			require.NoError(t, err)
			require.True(t, bytes.Equal(taken.Bytes(), got.Bytes()))
			c.Abort()
			require.Equal(t, dropped, c.Dropped(), "also at the end")
		}
	}
}

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

// Each of many tasks has some messages for a peer that reads slowly. Those that began to wait first go first, and all of
// them end.
func TestManyTasksWaitForRoomOnOneConnection(t *testing.T) {
	const tasks, messages, size = 12, 5, 3000
	for name, send := range map[string]func(c *listener.Conn, p []byte) error{
		"Push": func(c *listener.Conn, p []byte) error { return c.Push(p) },
		"the water mark": func(c *listener.Conn, p []byte) error {
			if _, err := c.Write(nil); err != nil {
				return err
			}
			return c.Push(p)
		},
		"Sent": func(c *listener.Conn, p []byte) error {
			if err := c.Sent(); err != nil {
				return err
			}
			return c.Push(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("unix", listener.Limits{High: 3 * size, Low: size})
			fill(l, c)
			filled := c.Queued()
			var order []int
			var all []*outcome
			for i := range tasks {
				left := messages
				all = append(all, spawn(l.S, act.Func(func(t *act.Task) act.Directive {
					for ; left > 0; left-- {
						if err := send(c, message(i, size)); err != nil {
							return listener.Next(t, err)
						}
						order = append(order, i)
					}
					return act.Done
				})).begun(l))
			}
			require.Empty(t, order)
			got := make(chan []byte, 1)
			go func() {
				all, _ := io.ReadAll(peer)
				got <- all
			}()
			for _, o := range all {
				require.Equal(t, act.Done, o.over(l))
			}
			require.NoError(t, c.CloseWrite())
			l.Until("all is sent", func() bool { return c.Queued() == 0 })
			bytes := servertest.Receive(t, got)
			require.Greater(t, len(bytes), filled+tasks*messages*size)
			bytes = bytes[len(bytes)-tasks*messages*size:]
			for n, i := range order {
				require.Equal(t, message(i, size), bytes[n*size:][:size])
			}
			require.Equal(t, 0, order[0], "the first that has waited")
			c.Abort()
		})
	}
}

func TestAPeerThatIsTooSlowIsAborted(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{Overflow: listener.Abort})
	owner := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		_, err := c.Peek(1)
		return c.Next(t, err)
	})).begun(l)
	fill(l, c)
	l.Turn(func(*act.Task) {
		require.Equal(t, net.ErrClosed, c.Push([]byte("more")))
		require.Equal(t, net.ErrClosed, c.Push([]byte("more")))
	})
	require.Equal(t, act.Failed, owner.over(l))
	require.Equal(t, net.ErrClosed, owner.err)
	_, err := io.Copy(io.Discard, peer)
	require.ErrorIs(t, err, syscall.ECONNRESET)
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

// The count is the connection's, over turns, and not the next one's that gets its memory.
func TestDroppedMessagesAreCountedForEachConnection(t *testing.T) {
	l := servertest.New(t, act.Config{})
	slow, peer := l.Conn("unix", listener.Limits{Overflow: listener.Drop})
	fill(l, slow)
	for range 3 {
		l.Turn(func(*act.Task) { require.NoError(t, slow.Push([]byte("x"))) })
	}
	go func() { _, _ = io.Copy(io.Discard, peer) }()
	l.Until("all is sent", func() bool { return slow.Queued() == 0 })
	l.Turn(func(*act.Task) { require.NoError(t, slow.Push([]byte("taken"))) })
	require.Equal(t, 3, slow.Dropped())
	require.Zero(t, listener.Memory(slow))
	slow.Abort()
	for range 100 { // more than are kept
		c, _ := l.Conn("tcp", listener.Limits{})
		l.Turn(func(*act.Task) { require.NoError(t, c.Push([]byte("x"))) })
		require.Zero(t, c.Dropped())
		require.True(t, listener.AtRest(c))
		c.Abort()
	}
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

// With the race detector this shows that Scheduler reads nothing that changes.
func TestSchedulerIsForAnyGoroutine(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, _ := l.Conn("tcp", listener.Limits{})
	got := make(chan *act.Scheduler)
	go func() {
		for range 100 {
			got <- c.Scheduler()
		}
		close(got)
	}()
	l.Turn(func(*act.Task) { c.Abort() })
	for s := range got {
		require.Same(t, l.S, s)
	}
}
