package listener_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// What was broken: a client that takes a little at a time was seen to take nothing, because Linux reports room
// only when a third of the send buffer is free.
func TestFlushSeesASlowReaderBelowTheKernelsMark(t *testing.T) {
	for _, half := range []bool{false, true} {
		l := servertest.New(t, act.Config{})
		fd, peer := l.Pair("tcp")
		require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20))
		require.NoError(t, peer.(*net.TCPConn).SetReadBuffer(32<<10))
		stream, err := l.Engine().Adopt(fd, false, (*monitor.ConnLimiter)(nil))
		require.NoError(t, err)
		c := listener.NewConn(l.S, stream, listener.Limits{})
		told := 0
		l.OS.Events = func(got []netpoll.Event) []netpoll.Event {
			for _, e := range got {
				if e.Ready&netpoll.Out != 0 {
					told++
				}
			}
			return got
		}
		written := fillUp(l, c)
		if half {
			require.NoError(t, c.CloseWrite())
		}
		o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
			if err := c.Sent(); err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})).begun(l)

		before, taken := c.Queued(), 0
		told = 0
		for c.Queued() == before {
			part := make([]byte, 16<<10)
			_, err := io.ReadFull(peer, part)
			require.NoError(t, err)
			taken += len(part)
			l.For(5 * time.Millisecond)
			require.Zero(t, told, "the kernel says nothing after %d bytes", taken)
			require.Equal(t, before, c.Queued())
			require.NoError(t, c.Flush())
		}
		require.Less(t, c.Queued(), before)
		require.Equal(t, 1, o.turns)

		heard := make(chan int, 1)
		go func() {
			n, _ := io.Copy(io.Discard, peer)
			heard <- int(n)
		}()
		require.Equal(t, act.Done, o.over(l), "the wake-up is not lost")
		require.NotZero(t, told)
		require.NoError(t, c.CloseWrite())
		require.Equal(t, written, taken+servertest.Receive(t, heard))
		c.Abort()
	}
}

// fillUp writes until nothing moves any more.
func fillUp(l *servertest.Stepped, c *listener.Conn) (written int) {
	for quiet := 0; quiet < 3; {
		before := written
		l.Turn(func(*act.Task) {
			for {
				n, err := c.Write(make([]byte, 64<<10))
				if written += n; err != nil {
					break
				}
			}
			_ = c.Flush()
		})
		l.For(30 * time.Millisecond)
		if quiet++; written > before {
			quiet = 0
		}
	}
	return written
}
