package readiness_test

import (
	"bytes"
	"io"
	"math"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/readiness"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// entered returns a stream that has a place of a limiter of its own.
func entered(l *servertest.Stepped, network string) (*readiness.Socket, net.Conn, *monitor.ConnLimiter) {
	l.T.Helper()
	places := monitor.NewConnLimiter(1)
	require.True(l.T, places.Acquire())
	stream, peer := l.Stream(network, places)
	return stream, peer, places
}

// reply is what a client gets that has sent more than was read.
var reply = bytes.Repeat([]byte("a reply of a megabyte."), 48<<10)

// whole plays one exchange: the client sends, the server answers without reading all of that and ends the
// connection with end. It reports whether the answer arrived whole.
func whole(l *servertest.Stepped, end func(*readiness.Socket)) bool {
	stream, peer := l.Stream("tcp", nil)
	servertest.Send(l.T, peer, "a request whose body is not read")
	_, err := stream.Send(nil, reply, 2*len(reply))
	require.NoError(l.T, err)
	got := make(chan []byte, 1)
	go func() {
		time.Sleep(time.Millisecond)
		_, _ = peer.Write([]byte("more of the body"))
		all, _ := io.ReadAll(peer)
		_ = peer.Close()
		got <- all
	}()
	var all []byte
	ended := false
	l.Until("the client has what it gets", func() bool {
		if q, _ := stream.Queued(); q == 0 && !ended {
			ended = true
			end(stream)
		}
		select {
		case all = <-got:
			return true
		default:
			return false
		}
	})
	return bytes.Equal(all, reply)
}

// What a plain close costs: RFC 9112 section 9.6.
func TestAClosedConnectionDeliversItsLastBytesAndAPlainCloseDoesNot(t *testing.T) {
	exchanges := tier.Choose(60, 60, 200)
	l := servertest.New(t, act.Config{})
	staged, plain := 0, 0
	for range exchanges {
		if whole(l, func(s *readiness.Socket) { s.Close(servertest.Timeout) }) {
			staged++
		}
		l.Until("nothing lingers", func() bool { return readiness.Lingering(l.Engine()) == 0 })
	}
	for range exchanges / 5 {
		if whole(l, readiness.ClosePlainly) {
			plain++
		}
	}
	t.Logf("whole: %d of %d closed in stages, %d of %d closed plainly", staged, exchanges, plain, exchanges/5)
	require.Equal(t, exchanges, staged)
	require.Less(t, plain, exchanges/5/2)
}

func TestWhatIsQueuedIsDeliveredAfterTheClose(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		l := servertest.New(t, act.Config{})
		stream, peer, places := entered(l, network)
		taken := fill(l, stream)
		stream.Close(servertest.Timeout)
		requireClosedToItsOwner(t, stream)
		total := drained(peer)
		l.Until("the write side is closed", func() bool { return l.OS.Count("closewrite") == 1 })
		require.Equal(t, taken, <-total)
		require.Equal(t, 1, places.Open(), "the peer has not closed")
		require.NoError(t, peer.Close())
		l.Until("the end", func() bool { return places.Open() == 0 })
		require.Zero(t, l.OS.Count("reset"))
		requireClosed(t, stream)
	}
}

// requireClosedToItsOwner requires calls on a stream that lingers to fail.
func requireClosedToItsOwner(t *testing.T, stream *readiness.Socket) {
	t.Helper()
	_, err := stream.Send(nil, []byte("x"), 1)
	require.Error(t, err)
	stream.Close(0) // changes nothing
}

func TestAnExchangeThatIsOverDoesNotLinger(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer, places := entered(l, "tcp")
	require.NoError(t, peer.(*net.TCPConn).CloseWrite())
	l.Until("EOF", func() bool { _, err := stream.Lend(1); return err == io.EOF })
	_, err := stream.Send(nil, []byte("bye"), 3)
	require.NoError(t, err)
	stream.Close(servertest.Timeout)
	require.Zero(t, places.Open(), "at once")
	require.Equal(t, 1, l.OS.Count("closewrite"))
	servertest.Expect(t, peer, "bye")
	servertest.ExpectEOF(t, peer)
}

func TestTheLingerIsBounded(t *testing.T) {
	const within = 20 * time.Millisecond
	for name, row := range map[string]struct {
		network string
		queue   bool
		peer    func(net.Conn)
		end     string
	}{
		"by a peer that never closes":                {"tcp", false, func(net.Conn) {}, "close"},
		"by a peer that never reads":                 {"tcp", true, func(net.Conn) {}, "reset"},
		"by a peer on a Unix socket":                 {"unix", true, func(net.Conn) {}, "reset"},
		"by a peer that has only ended its writing":  {"tcp", true, func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() }, "reset"},
		"by a peer that sends for ever":              {"tcp", false, firehose, "close"},
		"by one that sends for ever and never reads": {"tcp", true, firehose, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			stream, peer, places := entered(l, row.network)
			if row.queue {
				fill(l, stream)
			}
			go row.peer(peer)
			l.OS.Forget()
			begun := time.Now()
			l.Turn(func(*act.Task) { stream.Close(within) })
			l.Until("its time is up", func() bool { return places.Open() == 0 })
			require.GreaterOrEqual(t, time.Since(begun), within)
			require.Equal(t, 1, l.OS.Count(row.end))
			require.Equal(t, 1, l.OS.Count("reset")+l.OS.Count("close"))
			require.LessOrEqual(t, l.OS.Count("receive"), 2*l.OS.Count("wait")+2, "at most two in a pass")
			require.NoError(t, l.S.Run(), "nothing holds it")
		})
	}
}

// firehose sends until it fails.
func firehose(c net.Conn) {
	for p := make([]byte, 64<<10); ; {
		if _, err := c.Write(p); err != nil {
			return
		}
	}
}

func TestALingerOfForEverIsNotOverAtOnce(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer, places := entered(l, "tcp")
	l.Turn(func(*act.Task) { stream.Close(math.MaxInt64) })
	l.For(5 * time.Millisecond)
	require.Equal(t, 1, places.Open())
	require.NoError(t, peer.Close())
	l.Until("the peer's close", func() bool { return places.Open() == 0 })
}

func TestALingeringCloseKeepsRunFromReturning(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer, places := entered(l, "tcp")
	taken := fill(l, stream)
	stream.Close(servertest.Timeout)
	const pause = 50 * time.Millisecond
	got := make(chan int)
	begun := time.Now()
	go func() {
		time.Sleep(pause)
		n, _ := io.Copy(io.Discard, peer)
		_ = peer.Close()
		got <- int(n)
	}()
	servertest.InTime(t, func() { require.NoError(t, l.S.Run()) })
	require.GreaterOrEqual(t, time.Since(begun), pause)
	require.Zero(t, places.Open())
	require.Equal(t, taken, <-got)
}

// All of it came with one edge, the end too: no event reports what one receive leaves.
func TestARunThatOnlyLingersDoesNotSleepOnUnreadInput(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer, places := entered(l, "unix")
	servertest.Send(t, peer, string(make([]byte, 50_000)))
	require.NoError(t, peer.Close())
	l.OS.Most = 5000
	stream.Close(servertest.Timeout)
	begun := time.Now()
	require.NoError(t, l.S.Run())
	require.Less(t, time.Since(begun), servertest.Timeout/2)
	require.Zero(t, places.Open())
	require.Equal(t, 11, l.OS.Count("receive"))
}

func TestADropEndsALingeringClose(t *testing.T) {
	for name, drop := range map[string]func(l *servertest.Stepped) error{
		"an order that drops":      func(l *servertest.Stepped) error { l.S.Shutdown(servertest.Cut); return l.S.Run() },
		"the scheduler's Close":    func(l *servertest.Stepped) error { return l.S.Close() },
		"an order that has a time": func(l *servertest.Stepped) error { l.S.Shutdown(soon); return l.S.Run() },
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			places := monitor.NewConnLimiter(3)
			var peers []net.Conn
			for i := range 3 {
				require.True(t, places.Acquire())
				stream, peer := l.Stream("tcp", places)
				if i > 0 {
					fill(l, stream)
				}
				stream.Close(servertest.Timeout)
				peers = append(peers, peer)
			}
			var cut *shutdown.Cut
			require.ErrorAs(t, drop(l), &cut)
			require.Equal(t, 3, cut.Lingering)
			require.Zero(t, places.Open())
			for _, peer := range peers[1:] { // the first has seen the end of the bytes
				_, err := io.Copy(io.Discard, peer)
				require.ErrorIs(t, err, syscall.ECONNRESET)
			}
		})
	}
}

// soon is the order to end within some milliseconds and then to drop.
var soon = shutdown.Now{Terms: shutdown.Policy{Time: 20 * time.Millisecond, Drop: true}}

func TestAResetEndsEveryStage(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, l *servertest.Stepped, s *readiness.Socket, peer net.Conn){
		"at rest": func(*testing.T, *servertest.Stepped, *readiness.Socket, net.Conn) {},
		"unread input": func(t *testing.T, _ *servertest.Stepped, _ *readiness.Socket, peer net.Conn) {
			servertest.Send(t, peer, "unread")
		},
		"a queue": func(_ *testing.T, l *servertest.Stepped, s *readiness.Socket, _ net.Conn) { fill(l, s) },
		"half-closed": func(t *testing.T, _ *servertest.Stepped, s *readiness.Socket, _ net.Conn) {
			require.NoError(t, s.CloseWrite())
		},
		"queue, half-closing": func(t *testing.T, l *servertest.Stepped, s *readiness.Socket, _ net.Conn) {
			fill(l, s)
			require.NoError(t, s.CloseWrite())
		},
		"the peer half-closed": func(t *testing.T, l *servertest.Stepped, s *readiness.Socket, peer net.Conn) {
			require.NoError(t, peer.(*net.TCPConn).CloseWrite())
			l.Until("EOF", func() bool { _, err := s.Lend(1); return err == io.EOF })
		},
		"lingering": func(_ *testing.T, _ *servertest.Stepped, s *readiness.Socket, _ net.Conn) {
			s.Close(servertest.Timeout)
		},
		"lingering with a queue": func(_ *testing.T, l *servertest.Stepped, s *readiness.Socket, _ net.Conn) {
			fill(l, s)
			s.Close(servertest.Timeout)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			stream, peer, places := entered(l, "tcp")
			prepare(t, l, stream, peer)
			l.For(2 * time.Millisecond)
			servertest.Reset(t, peer)
			if !readiness.IsLingering(stream) {
				l.Until("the reset is reported", func() bool { _, err := receiveAll(stream); return err != readiness.ErrWouldBlock })
				stream.Close(servertest.Timeout)
			}
			l.Until("closed", func() bool { return places.Open() == 0 })
			require.NoError(t, l.S.Run(), "nothing holds it")
		})
	}
}

// An error of the last steps matters to no task any more.
func TestErrorsOfTheLastStepsEndTheLinger(t *testing.T) {
	for call, queue := range map[string]bool{"closewrite": false, "send": true, "receive": false, "close": false} {
		t.Run(call, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			stream, peer, places := entered(l, "tcp")
			if queue {
				fill(l, stream)
			}
			servertest.Send(t, peer, "unread")
			l.For(5 * time.Millisecond)
			l.OS.Fail = servertest.Failing(call, syscall.EIO)
			stream.Close(servertest.Timeout)
			drained(peer)
			_ = peer.(*net.TCPConn).CloseWrite() // an error means that it was reset
			l.Until("the end", func() bool { return places.Open() == 0 })
		})
	}
}

func TestManyLingerAtATimeAndEndInAnyOrder(t *testing.T) {
	l := servertest.New(t, act.Config{})
	places := monitor.NewConnLimiter(0)
	var peers []net.Conn
	for i := range 60 {
		require.True(t, places.Acquire())
		stream, peer := l.Stream("tcp", places)
		stream.Close([]time.Duration{servertest.Timeout, 30 * time.Millisecond, servertest.Timeout}[i%3])
		peers = append(peers, peer)
	}
	for i := range peers {
		if at := i * 7 % len(peers); at%3 != 1 {
			require.NoError(t, peers[at].Close())
			l.For(100 * time.Microsecond)
		}
	}
	l.Until("all are closed", func() bool { return places.Open() == 0 })
	require.Zero(t, readiness.Lingering(l.Engine()))
	require.NoError(t, l.S.Run())
}

// What was broken (sim, TestManners): a caller of Step was told that there was nothing to do for as long as the
// linger takes, though there was input to discard that no event would report.
func TestStepKnowsOfInputToDiscard(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer, places := entered(l, "unix")
	_, err := peer.Write(make([]byte, 100))
	require.NoError(t, err)
	_, err = peer.Write(make([]byte, 100))
	require.NoError(t, err)
	require.NoError(t, peer.Close())
	l.For(5 * time.Millisecond)
	l.OS.Most = 10 // so that it takes many receives
	l.Turn(func(*act.Task) { stream.Close(time.Hour) })
	for places.Open() > 0 {
		at, ok := l.S.NextDeadline()
		require.True(t, ok)
		require.LessOrEqual(t, at, l.S.Now())
		_, err := l.S.Step(10)
		require.NoError(t, err)
	}
	require.NoError(t, l.S.Run())
}

// What was not noticed: queues were kept for further sockets whatever their size.
func TestOnlySmallQueuesAreKept(t *testing.T) {
	const more = 100 // than are kept
	l := servertest.New(t, act.Config{})
	for i := range more {
		stream, _ := l.Stream("unix", nil)
		_, err := stream.Send(nil, make([]byte, 1<<20), 1<<20)
		require.NoError(t, err)
		large, _ := stream.Queued()
		require.Greater(t, large, 64<<10, "it has grown")
		stream.Abort()
		if n, _ := readiness.Stock(l.Engine()); n > 0 {
			require.FailNow(t, "kept", "after %d", i)
		}
	}
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	streams := make([]*readiness.Socket, more)
	for i := range streams {
		streams[i], _ = l.Stream("unix", nil)
		_, err := streams[i].Send(nil, []byte("a little"), 1<<20)
		require.NoError(t, err)
	}
	for _, stream := range streams {
		stream.Abort()
	}
	n, largest := readiness.Stock(l.Engine())
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
		stream, _ := l.Stream("tcp", nil)
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
}
