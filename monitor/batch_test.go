package monitor_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// batched returns a scheduler that makes batches, and a connection.
func batched(t *testing.T) (*servertest.Stepped, monitor.Stream, net.Conn) {
	l := servertest.New(t, act.Config{})
	require.NoError(t, monitor.Use(monitor.Uring)(l.S))
	stream, peer := l.Stream("tcp")
	t.Cleanup(stream.Abort)
	l.For(0) // there is room, and that will not be news
	return l, stream, peer
}

// answers lets a task have a turn with what the peer has sent, and returns when that is over.
func answers(l *servertest.Stepped, s monitor.Stream, peer net.Conn, answer func()) {
	over := 0
	l.S.Spawn(servertest.Waits(func(t *act.Task) { s.AwaitInput(t.Waker()) }, &over))
	l.S.Spawn(act.Func(func(*act.Task) act.Directive {
		if over == 0 {
			return act.Yield
		}
		answer()
		return act.Done
	}))
	servertest.Send(l.T, peer, "?")
	l.Until("an answer", func() bool { return over > 0 })
	l.For(0)
}

func TestWhatWasGatheredIsSentBeforeWhatDependsOnIt(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, s monitor.Stream){
		"the end":        func(t *testing.T, s monitor.Stream) { require.NoError(t, s.CloseWrite()) },
		"a close":        func(_ *testing.T, s monitor.Stream) { s.Close(time.Hour) },
		"a reset":        func(_ *testing.T, s monitor.Stream) { s.Abort() },
		"a send":         func(_ *testing.T, s monitor.Stream) { _, _ = s.Send(nil, []byte("more"), 100) },
		"a file":         func(t *testing.T, s monitor.Stream) { _, _ = s.(monitor.FileSender).SendFile(file(t, 10), 0, 10) },
		"a goroutine":    func(_ *testing.T, s monitor.Stream) { s.(monitor.OutputLender).LendOutput().Return() },
		"a fact":         func(t *testing.T, s monitor.Stream) { require.True(t, s.(interface{ Taken() bool }).Taken()) },
		"nothing at all": nil,
		"a move": func(t *testing.T, s monitor.Stream) {
			m, err := s.(engine.Mover).Release()
			require.NoError(t, err)
			m.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, s, peer := batched(t)
			answers(l, s, peer, func() {
				_, err := s.Receive(make([]byte, 10))
				require.NoError(t, err)
				n, err := s.Send([]byte("an "), []byte("answer"), 100)
				require.NoError(t, err)
				require.Equal(t, 6, n)
				require.Zero(t, l.OS.Count("send"))
				if next != nil {
					next(t, s)
					require.Equal(t, len("an answer"), l.OS.Bytes("send"))
				}
			})
			require.GreaterOrEqual(t, l.OS.Bytes("send"), len("an answer"))
		})
	}
}

// What was written in a turn does not wait for turns that take long.
func TestTurnsThatTakeLongGatherNothing(t *testing.T) {
	clock := &servertest.Clock{}
	l := servertest.New(t, act.Config{Clock: clock})
	require.NoError(t, monitor.Use(monitor.Uring)(l.S))
	s, peer := l.Stream("tcp")
	t.Cleanup(s.Abort)
	l.For(0)
	for _, turn := range []struct {
		takes time.Duration
		sends int
	}{{time.Millisecond, 0}, {0, 1}, {0, 0}} {
		answers(l, s, peer, func() {
			_, _ = s.Receive(make([]byte, 10))
			l.OS.Forget()
			_, err := s.Send(nil, []byte("answer"), 100)
			require.NoError(t, err)
			require.Equal(t, turn.sends, l.OS.Count("send"))
			clock.Pass(turn.takes)
		})
	}
}

// Bytes that could not be queued are not gathered.
func TestNoMoreIsGatheredThanMayBeQueued(t *testing.T) {
	l, s, peer := batched(t)
	l.OS.Most = 1
	answers(l, s, peer, func() {
		n, err := s.Send(nil, []byte("answer"), 3)
		require.NoError(t, err)
		require.Equal(t, 1+3, n)
	})
}

func TestErrorsOfABatchAreThoseOfTheConnection(t *testing.T) {
	for _, call := range []string{"send", "receive"} {
		t.Run(call, func(t *testing.T) {
			l, s, peer := batched(t)
			l.OS.Fail = func(name string, _ int) error {
				if name == call {
					l.OS.Fail = nil // the kernel says it once
					return syscall.ECONNRESET
				}
				return nil
			}
			answers(l, s, peer, func() { _, _ = s.Send(nil, []byte("answer"), 100) })
			_, err := s.Queued()
			require.Equal(t, syscall.ECONNRESET, err)
		})
	}
}

// At the mark of out-of-band data, and behind the end, a receive has results that only the turn interprets.
func TestNothingIsReceivedAheadBeyondAMark(t *testing.T) {
	for _, mark := range []netpoll.Ready{0, netpoll.Priority, netpoll.PeerClosed, netpoll.Error} {
		l, s, peer := batched(t)
		l.OS.Events = func(got []netpoll.Event) []netpoll.Event {
			for i := range got {
				got[i].Ready |= mark
			}
			return got
		}
		answers(l, s, peer, func() { require.Equal(t, mark == 0, l.OS.Count("receive") == 1, "%v", mark) })
	}
}

func TestAConnectionWithUnreadBytesDoesNotMove(t *testing.T) {
	l, s, peer := batched(t)
	answers(l, s, peer, func() {
		_, err := s.(engine.Mover).Release()
		require.Equal(t, engine.ErrInUse, err)
		s.Abort()
	})
	require.Zero(t, l.Engine().(engine.Audited).Strays(), "closing it frees the memory")
}

func TestNothingIsReceivedAheadWhileMemoryIsShort(t *testing.T) {
	l, s, peer := batched(t)
	b := budget.Of(l.S)
	b.Bound(0)
	b.Set(&budget.Account{}, 0)
	require.True(t, b.Paused())
	answers(l, s, peer, func() { require.Zero(t, l.OS.Count("receive")) })
}

func TestNothingIsReceivedAheadUnlessATaskWaitsForIt(t *testing.T) {
	for _, end := range []bool{false, true} {
		l, s, peer := batched(t)
		if end {
			l.S.Spawn(servertest.Waits(func(t *act.Task) { _, _ = s.(monitor.CloseNotifier).AwaitEnd(t.Waker()) }, new(int)))
			l.For(0)
		}
		servertest.Send(t, peer, "?")
		l.Until("input", func() bool { return monitor.Reported(s, netpoll.In) })
		require.Zero(t, l.OS.Count("receive"))
	}
}

// The poll that receives ahead may follow a long sleep, and the scheduler's time is still that before it.
func TestAConnectionThatReceivesAheadAfterASleepWasNotIdleForThatLong(t *testing.T) {
	clock, peer := &servertest.Clock{}, net.Conn(nil)
	l := servertest.New(t, act.Config{Clock: clock, Trace: &act.Trace{Idle: func(_ *act.Scheduler, atMost time.Duration) {
		if atMost != 0 {
			clock.Pass(time.Hour)
			servertest.Send(t, peer, "hello")
		}
	}}})
	require.NoError(t, monitor.Use(monitor.Uring)(l.S))
	var stream monitor.Stream
	stream, peer = l.Stream("tcp")
	var since time.Duration
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		if _, err := stream.Lend(64); err != nil {
			stream.AwaitInput(t.Waker())
			return act.Wait
		}
		since, _ = stream.(monitor.IdleReporter).IdleSince()
		stream.Abort()
		return act.Done
	}))
	require.NoError(t, l.S.Run())
	require.Equal(t, time.Hour>>20<<20, since)
}

// What follows from a reset does not hide it.
func TestTheErrorOfAReceiveIsKeptWhenGatheredBytesFailLater(t *testing.T) {
	l := servertest.New(t, act.Config{})
	require.NoError(t, monitor.Use(monitor.Uring)(l.S))
	s, peer := l.Stream("unix") // where more may have arrived after a short receive
	t.Cleanup(s.Abort)
	l.For(0)
	answers(l, s, peer, func() {
		_, _ = s.Receive(make([]byte, 10))
		_, err := s.Send(nil, []byte("answer"), 100)
		require.NoError(t, err)
		l.OS.Fail = func(call string, _ int) error {
			return map[string]error{"receive": syscall.ECONNRESET, "send": syscall.EPIPE}[call]
		}
		_, err = s.Receive(make([]byte, 10))
		require.Equal(t, syscall.ECONNRESET, err)
	})
	_, err := s.Queued()
	require.Equal(t, syscall.ECONNRESET, err)
}
