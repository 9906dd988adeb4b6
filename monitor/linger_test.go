package monitor_test

import (
	"io"
	"math"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// clog queues a megabyte that the system does not take.
func clog(l *servertest.Stepped, s monitor.Stream) {
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	_, err := s.Send(nil, make([]byte, 1<<20), 1<<20)
	require.NoError(l.T, err)
}

// All of it came with one edge, the end too: no event reports what one receive leaves.
func TestARunThatOnlyLingersDoesNotSleepOnUnreadInput(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("unix")
	servertest.Send(t, peer, string(make([]byte, 50_000)))
	require.NoError(t, peer.Close())
	l.OS.Most = 5000
	stream.Close(time.Hour)
	require.NoError(t, l.S.Run())
	require.Zero(t, monitor.Open(l.Engine()))
	require.Equal(t, 11, l.OS.Count("receive"))
}

// What was not noticed: queues were kept for further sockets whatever their size.
func TestOnlySmallQueuesAreKept(t *testing.T) {
	const more = 100 // than are kept
	l := servertest.New(t, act.Config{})
	for i := range more {
		stream, _ := l.Stream("unix")
		_, err := stream.Send(nil, make([]byte, 1<<20), 1<<20)
		require.NoError(t, err)
		large, _ := stream.Queued()
		require.Greater(t, large, 64<<10, "it has grown")
		stream.Abort()
		if n, _ := monitor.Stock(l.Engine()); n > 0 {
			require.FailNow(t, "kept", "after %d", i)
		}
	}
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	streams := make([]monitor.Stream, more)
	for i := range streams {
		streams[i], _ = l.Stream("unix")
		_, err := streams[i].Send(nil, []byte("a little"), 1<<20)
		require.NoError(t, err)
	}
	for _, stream := range streams {
		stream.Abort()
	}
	n, largest := monitor.Stock(l.Engine())
	require.Equal(t, 64, n)
	require.LessOrEqual(t, largest, 64<<10)
}

// The bound counts what is queued, and not what the system has taken.
func TestSendQueuesUpToItsBoundAndNoFurther(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	for _, row := range []struct{ head, p, high, taken int }{
		{0, 99, 100, 99}, {0, 100, 100, 100}, {0, 101, 100, 100}, {30, 100, 100, 70}, {100, 1, 100, 0}, {101, 1, 100, 0},
	} {
		stream, _ := l.Stream("tcp")
		n, err := stream.Send(make([]byte, row.head), make([]byte, row.p), row.high)
		require.NoError(t, err)
		require.Equal(t, row.taken, n, "%+v", row)
		queued, _ := stream.Queued()
		require.Equal(t, row.head+row.taken, queued, "%+v", row)
		n, err = stream.Send(nil, make([]byte, row.high), row.high)
		require.NoError(t, err)
		require.Equal(t, max(0, row.high-queued), n, "%+v, once more", row)
		stream.Abort()
	}
	stream, _ := l.Stream("tcp")
	l.OS.Fail, l.OS.Most = nil, 1000 // so that what has gone out and the room that is left are more than an int holds
	n, err := stream.Send(make([]byte, 4), make([]byte, 5000), math.MaxInt)
	require.NoError(t, err)
	require.Equal(t, 5000, n)
	queued, _ := stream.Queued()
	require.Equal(t, 4004, queued)
	stream.Abort()
}

func TestADropEndsALingeringClose(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp")
	clog(l, stream)
	local := stream.LocalAddr().String()
	stream.Close(time.Hour)
	l.S.Shutdown(servertest.Cut)
	var cut *shutdown.Cut
	require.ErrorAs(t, l.S.Run(), &cut)
	require.Equal(t, 1, cut.Lingering)
	left := cut.Left[0]
	require.Equal(t, "a closed connection of tcp "+local, left.Name)
	require.Equal(t, peer.LocalAddr().String(), left.Peer)
	require.Len(t, left.Waits, 2)
	require.Equal(t, "room: 1048576 bytes queued", left.Waits[0])
	require.Contains(t, left.Waits[1], "a timer due in ")
	require.Zero(t, monitor.Open(l.Engine()))
	_, err := io.Copy(io.Discard, peer)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// A queue that is never empty, because as much is written as is sent, does not grow for ever.
func TestAQueueThatIsNeverEmptyStaysSmall(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("unix")
	defer stream.Abort()
	for range 500 {
		l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
		_, err := stream.Send(nil, make([]byte, 5000), 20_000)
		require.NoError(t, err)
		l.OS.Fail, l.OS.Most = nil, 3000
		_, err = stream.Send(nil, nil, 0)
		require.NoError(t, err)
		_, err = io.ReadFull(peer, make([]byte, 3000))
		require.NoError(t, err)
		queued, _ := stream.Queued()
		require.NotZero(t, queued)
		_, memory := monitor.Busy(l.Engine())
		require.LessOrEqual(t, memory, 128<<10)
	}
}

// An error of the last steps matters to no task any more.
func TestErrorsOfTheLastStepsEndTheLinger(t *testing.T) {
	for call, queue := range map[string]bool{"closewrite": false, "send": true, "receive": false, "close": false} {
		t.Run(call, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			stream, peer := l.Stream("tcp")
			if queue {
				clog(l, stream)
			}
			servertest.Send(t, peer, "unread")
			l.OS.Fail = servertest.Failing(call, syscall.EIO)
			stream.Close(servertest.Timeout)
			drained(peer)
			_ = peer.(*net.TCPConn).CloseWrite() // an error means that it was reset
			l.Until("the end", func() bool { return monitor.Open(l.Engine()) == 0 })
		})
	}
}
