package listener_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

func TestWhatIsWrittenInATurnGoesOutInOneCallForEachConnection(t *testing.T) {
	l := servertest.New(t, act.Config{})
	conns, peers := make([]*listener.Conn, 20), make([]net.Conn, 20)
	for i := range conns {
		conns[i], peers[i] = l.Conn("tcp", listener.Limits{})
		defer conns[i].Abort()
	}
	l.OS.Forget()
	l.Turn(func(*act.Task) {
		for n := range 30 {
			for _, c := range conns {
				_, err := c.WriteString(string(rune('a' + n%26)))
				require.NoError(t, err)
				require.Equal(t, n+1, c.Queued())
			}
		}
		require.Zero(t, l.OS.Count("send"))
	})
	require.Equal(t, len(conns), l.OS.Count("send"))
	for _, peer := range peers {
		servertest.Expect(t, peer, "abcdefghijklmnopqrstuvwxyzabcd")
	}
	require.Zero(t, conns[0].Queued())
	require.True(t, listener.AtRest(conns[0]))
}

func TestAWriteThatIsTooMuchToGatherGoesOutAtOnceWithWhatIs(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	defer c.Abort()
	small, rest, one := strings.Repeat("s", 100), strings.Repeat("r", listener.Gathered-100), "1"
	l.OS.Forget()
	l.Turn(func(*act.Task) {
		for _, p := range []string{small, rest} {
			_, err := c.WriteString(p)
			require.NoError(t, err)
		}
		require.Zero(t, l.OS.Count("send"), "just as much as is gathered")
		_, err := c.WriteString(one)
		require.NoError(t, err)
		require.Equal(t, 1, l.OS.Count("send"), "a byte more")
		require.Equal(t, 1, l.OS.Count("gathered"), "in one call")
		_, err = c.WriteString(one)
		require.NoError(t, err)
		require.Equal(t, 1, l.OS.Count("send"), "it begins anew")
	})
	require.Equal(t, 2, l.OS.Count("send"))
	servertest.Expect(t, peer, small+rest+one+one)

	l.OS.Forget()
	l.Turn(func(*act.Task) {
		_, err := c.WriteString(strings.Repeat("x", listener.Gathered+1))
		require.NoError(t, err)
		require.Equal(t, 1, l.OS.Count("send"))
		require.Zero(t, l.OS.Count("gathered"), "nothing to gather it with")
	})
}

// Shared bytes take no buffer, unless there is more to write in the turn, or the system refuses them.
func TestSharedBytesGoOutInOrder(t *testing.T) {
	shared, large := []byte("shared"), bytes.Repeat([]byte("L"), listener.Gathered+1)
	share := func(t *testing.T, c *listener.Conn, p []byte) {
		n, err := c.Internals().WriteShared(p)
		require.NoError(t, err)
		require.Equal(t, len(p), n)
	}
	write := func(t *testing.T, c *listener.Conn, p string) {
		_, err := c.WriteString(p)
		require.NoError(t, err)
	}
	for name, row := range map[string]struct {
		turn  func(t *testing.T, c *listener.Conn)
		want  string
		sends int
	}{
		"alone": {func(t *testing.T, c *listener.Conn) {
			share(t, c, shared)
			require.Zero(t, listener.Memory(c))
			require.Equal(t, len(shared), c.Queued())
		}, "shared", 1},
		"twice": {func(t *testing.T, c *listener.Conn) { share(t, c, shared); share(t, c, shared) }, "sharedshared", 1},
		"and a write": {func(t *testing.T, c *listener.Conn) {
			share(t, c, shared)
			room := c.Room()
			write(t, c, "w")
			require.Equal(t, room-1, c.Room())
		}, "sharedw", 1},
		"behind a write": {func(t *testing.T, c *listener.Conn) { write(t, c, "w"); share(t, c, shared) }, "wshared", 1},
		"and a push":     {func(t *testing.T, c *listener.Conn) { share(t, c, shared); require.NoError(t, c.Push([]byte("p"))) }, "sharedp", 1},
		"and nothing": {func(t *testing.T, c *listener.Conn) {
			share(t, c, shared)
			share(t, c, nil)
			_, err := c.Write(nil)
			require.NoError(t, err)
		}, "shared", 1},
		"and a flush": {func(t *testing.T, c *listener.Conn) {
			share(t, c, shared)
			require.NoError(t, c.Flush())
			write(t, c, "w")
		}, "sharedw", 2},
		"large":               {func(t *testing.T, c *listener.Conn) { share(t, c, large) }, string(large), 1},
		"and a large write":   {func(t *testing.T, c *listener.Conn) { share(t, c, shared); write(t, c, string(large)) }, "shared" + string(large), 1},
		"and a close of both": {func(t *testing.T, c *listener.Conn) { share(t, c, shared); require.NoError(t, c.Close()) }, "shared", 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("tcp", listener.Limits{})
			l.OS.Forget()
			l.Turn(func(*act.Task) { row.turn(t, c) })
			require.Equal(t, row.sends, l.OS.Count("send"))
			servertest.Expect(t, peer, row.want)
			c.Abort()
			_, err := c.Internals().WriteShared(shared)
			require.Equal(t, net.ErrClosed, err)
		})
	}
	require.Equal(t, "shared", string(shared))
}

func TestSharedBytesThatTheSystemRefusesAreQueued(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{High: 10, Low: 1})
	defer c.Abort()
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	shared := []byte("0123456789")
	l.Turn(func(*act.Task) { _, _ = c.Internals().WriteShared(shared) })
	l.Turn(func(*act.Task) {
		n, err := c.Internals().WriteShared(shared)
		require.Zero(t, n)
		require.Implements(t, (*act.Blocked)(nil), err)
	})
	l.OS.Fail = nil
	require.NoError(t, c.Flush())
	servertest.Expect(t, peer, "0123456789")
}

// The kernel is asked for what is queued, once, and for nothing when nothing is.
func TestFlushTriesAgainWhatIsQueued(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("unix", listener.Limits{Low: 1})
	defer c.Abort()
	require.NoError(t, c.Flush())
	require.Zero(t, l.OS.Count("send"), "at rest")
	l.OS.Events = func(got []netpoll.Event) []netpoll.Event { return got[:0] } // no event reports room
	l.OS.Most = 1000
	l.Turn(func(*act.Task) {
		n, err := c.Write(make([]byte, 5000))
		require.NoError(t, err)
		require.Equal(t, 5000, n)
	})
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		if err := c.Sent(); err != nil {
			return listener.Next(t, err)
		}
		return act.Done
	})).begun(l)
	for queued := 4000; queued > 0; queued -= 1000 {
		require.Equal(t, queued, c.Queued())
		require.Equal(t, 1, o.turns)
		l.OS.Forget()
		require.NoError(t, c.Flush())
		require.Equal(t, 1, l.OS.Count("send"))
	}
	require.Equal(t, act.Done, o.over(l), "the waiting task gets it")
	l.OS.Forget()
	l.Turn(func(*act.Task) {
		require.NoError(t, c.Flush())
		require.Zero(t, l.OS.Count("send"), "nothing is queued any more")
		_, _ = c.WriteString("gathered")
		require.NoError(t, c.Flush())
		require.Equal(t, 1, l.OS.Count("send"), "once for what was gathered")
	})
	servertest.Expect(t, peer, string(make([]byte, 5000))+"gathered")
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	l.Turn(func(*act.Task) {
		_, _ = c.WriteString("refused")
		l.OS.Forget()
		require.NoError(t, c.Flush())
		require.Equal(t, 1, l.OS.Count("send"), "what has just been refused is not tried again")
		_, _ = c.WriteString(", and again")
		require.NoError(t, c.Flush())
		require.Equal(t, 2, l.OS.Count("send"), "both together")
	})
	l.OS.Fail = func(string, int) error { return syscall.EPIPE }
	require.Equal(t, syscall.EPIPE, c.Flush())
	_, err := c.Write(nil)
	require.Equal(t, syscall.EPIPE, err, "and it is kept")
	l.OS.Fail = nil
}

func TestFlushAndSentDoNotWaitForABatch(t *testing.T) {
	waits := func(c *listener.Conn) error { return c.Internals().Send() }
	for name, call := range map[string]func(*listener.Conn) error{
		"Flush": (*listener.Conn).Flush, "Sent": (*listener.Conn).Sent, "Send waits": waits,
	} {
		l := servertest.New(t, act.Config{})
		require.NoError(t, monitor.Use(monitor.Uring)(l.S))
		c, peer := l.Conn("tcp", listener.Limits{})
		l.For(0) // there is room, and that will not be news
		o := spawn(l.S, act.Func(func(task *act.Task) act.Directive {
			if _, err := c.Peek(1); err != nil {
				return listener.Next(task, err)
			}
			_, _ = c.WriteString("now")
			require.NoError(t, call(c))
			require.Equal(t, name != "Send waits", l.OS.Bytes("send") == 3, name)
			return act.Done
		})).begun(l)
		servertest.Send(t, peer, "?")
		require.Equal(t, act.Done, o.over(l))
		c.Abort()
	}
}

// A task that writes no more than there is room for never waits, however the peer behaves.
func TestRoomIsWhatWriteTakesForCertain(t *testing.T) {
	for _, high := range []int{1, 3000, listener.Gathered, listener.Gathered + 1, 10_000, 64 << 10} {
		l := servertest.New(t, act.Config{})
		c, _ := l.Conn("unix", listener.Limits{High: high})
		require.Equal(t, max(high, listener.Gathered), c.Room(), "at rest")
		d := rand.New(rand.NewPCG(1, uint64(high)))
		for range 400 {
			l.Turn(func(*act.Task) {
				for range 3 {
					room, part := c.Room(), 0
					if room > 0 {
						part = 1 + d.IntN(room)
					}
					n, err := c.Write(make([]byte, part))
					require.Equal(t, part, n)
					if room > 0 {
						require.NoError(t, err)
					}
					require.GreaterOrEqual(t, c.Room(), 0)
					if c.Queued() <= max(high, listener.Gathered) { // or the socket has taken some
						require.GreaterOrEqual(t, c.Room(), room-part)
					}
				}
			})
		}
		require.Zero(t, c.Room(), "the peer does not read")
		l.Turn(func(*act.Task) {
			_, err := c.Write(nil)
			require.Implements(t, (*act.Blocked)(nil), err)
		})
		l.OS.Forget()
		for range 100 {
			c.Room()
		}
		require.Zero(t, l.OS.Count("send"))
		c.Abort()
		require.Zero(t, c.Room(), "closed")
	}
}

func TestThereIsNoRoomForWhatWouldFail(t *testing.T) {
	l, clock := virtual(t)
	c, peer := l.Conn("tcp", listener.Limits{})
	require.NoError(t, c.SetWriteDeadline(start.Add(2*time.Second)))
	require.Equal(t, 64<<10, c.Room())
	pass(l, clock, 2*time.Second)
	require.Zero(t, c.Room(), "after the deadline")
	require.NoError(t, c.SetWriteDeadline(time.Time{}))
	require.Equal(t, 64<<10, c.Room())
	l.Turn(func(*act.Task) {
		_, err := c.WriteString("bye")
		require.NoError(t, err)
		require.Equal(t, 64<<10-3, c.Room())
		require.NoError(t, c.CloseWrite())
		require.Zero(t, c.Room(), "after the end of writing")
	})
	servertest.Expect(t, peer, "bye")
	c.Abort()
}

func TestInvalidLimits(t *testing.T) {
	for says, limits := range map[string]listener.Limits{
		"Limits with a negative bound: {Read:-1":               {Read: -1},
		"Limits with a negative bound: {Read:0 ":               {Conns: -1},
		"Limits whose Low is not below High: {Read:0 High:10 ": {High: 10, Low: 10},
		"Limits whose Low is not below High: {Read:0 High:0 ":  {Low: 100 << 10},
	} {
		_, err := limits.Resolved()
		require.ErrorContains(t, err, says)
	}
}

func TestGatheredBytesAreLentOnlyWhileAWriteWouldBeAppended(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	l.Turn(func(*act.Task) {
		require.Nil(t, c.Internals().Gathered(1), "nothing is gathered")
		_, err := c.WriteString("a")
		require.NoError(t, err)
		require.Nil(t, c.Internals().Gathered(listener.Gathered), "a byte too many")
		to := c.Internals().Gathered(listener.Gathered - 1)
		*to = append(*to, 'b')
		require.NoError(t, c.SetWriteDeadline(c.Scheduler().Clock().Wall().Add(time.Hour)))
		require.Nil(t, c.Internals().Gathered(1), "a Write asks for the time")
	})
	servertest.Expect(t, peer, "ab")
	l.Turn(func(*act.Task) { c.Abort() })
	require.Nil(t, c.Internals().Gathered(1))
}
