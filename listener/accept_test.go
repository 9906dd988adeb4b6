package listener_test

import (
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// doorway is a leaf that accepts, with the limiter of its connections.
type doorway struct {
	listener.Accept
	places *monitor.ConnLimiter
}

// door returns an acceptor of l with a leaf that accepts there.
func door(l *servertest.Stepped, places *monitor.ConnLimiter) *doorway {
	l.T.Helper()
	from, err := listen(l.S, "127.0.0.1:0", nil, places)
	require.NoError(l.T, err)
	return &doorway{listener.Accept{From: from, Limits: listener.Limits{Linger: time.Millisecond}}, places}
}

// listen returns an acceptor on s.
func listen(s *act.Scheduler, at string, sibling monitor.Acceptor, limiter *monitor.ConnLimiter) (monitor.Acceptor, error) {
	e, err := monitor.EngineOf(s)
	if err != nil {
		return nil, err
	}
	addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))
	return e.Listen(monitor.ListenOptions{Addr: addr, Sibling: sibling, ConnOptions: monitor.ConnOptions{Limiter: limiter}})
}

// acceptAll is a task that accepts until its acceptor is closed.
func acceptAll(l *servertest.Stepped, a *doorway) (*outcome, *[]*listener.Conn) {
	var conns []*listener.Conn
	o := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		for {
			if d := a.Act(t); d != act.Done {
				return d
			}
			conns = append(conns, a.Conn())
		}
	}))
	l.T.Cleanup(func() {
		for _, c := range conns {
			c.Abort()
		}
		_ = a.From.Close()
	})
	return o, &conns
}

func TestWithoutDescriptorsAcceptPausesAndRecovers(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		t.Run(errno.Error(), func(t *testing.T) {
			l, clock := virtual(t)
			a := door(l, monitor.NewConnLimiter(10))
			spare, _ := l.Stream("tcp", nil)
			o, conns := acceptAll(l, a)
			l.OS.Fail = servertest.Failing("accept", errno)
			servertest.Dial(t, a.From.Addr())
			l.Until("it has tried", func() bool { return l.OS.Count("accept") == 1 })
			l.For(0)
			require.Equal(t, 1, l.OS.Count("accept"), "no time has passed, and it does not spin")
			for n := 2; n <= 12; n++ { // also for the line in the log
				pass(l, clock, listener.RetryAfter)
				require.Equal(t, n, l.OS.Count("accept"), "once in a while")
			}
			require.Equal(t, act.Wait, o.directive)
			require.Zero(t, a.places.Conns())
			require.Equal(t, 1, l.Logs.FilterMessage("accepting pauses").Len())

			l.OS.Fail = nil
			spare.Abort() // gives a descriptor back: no time passes
			l.Until("the connection", func() bool { return len(*conns) == 1 })
			require.Equal(t, 1, a.places.Conns())
		})
	}
}

func TestAConnectionThatCannotBeWatchedIsGivenUpAndAcceptPauses(t *testing.T) {
	l, clock := virtual(t)
	a := door(l, monitor.NewConnLimiter(3))
	_, conns := acceptAll(l, a)
	short := true
	l.OS.Fail = func(call string, _ int) error {
		if call == "add" && short {
			return syscall.ENOSPC
		}
		return nil
	}
	peer := servertest.Dial(t, a.From.Addr())
	l.Until("it has tried", func() bool { return l.OS.Count("close") == 1 })
	require.Zero(t, a.places.Conns())
	servertest.ExpectEOF(t, peer)
	short = false
	servertest.Dial(t, a.From.Addr())
	pass(l, clock, listener.RetryAfter)
	l.Until("the next", func() bool { return len(*conns) == 1 })
}

func TestErrorsOfOneConnectionArePassedOver(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN,
		syscall.ENOPROTOOPT, syscall.EHOSTDOWN, syscall.EHOSTUNREACH, syscall.EOPNOTSUPP, syscall.ENETUNREACH,
		syscall.ECONNRESET, syscall.ETIMEDOUT} {
		l, _ := virtual(t)
		a := door(l, monitor.NewConnLimiter(1))
		_, conns := acceptAll(l, a)
		l.OS.Fail = func(call string, _ int) error {
			if call == "accept" && l.OS.Count("accept") == 1 {
				return errno
			}
			return nil
		}
		servertest.Dial(t, a.From.Addr())
		l.Until("the connection", func() bool { return len(*conns) == 1 })
		require.Zero(t, l.Logs.Len(), "an everyday matter")
	}
}

func TestAnUnknownErrorFailsAccept(t *testing.T) {
	l, _ := virtual(t)
	a := door(l, monitor.NewConnLimiter(1))
	o, _ := acceptAll(l, a)
	l.OS.Fail = servertest.Failing("accept", syscall.EINVAL)
	servertest.Dial(t, a.From.Addr())
	require.Equal(t, act.Failed, o.over(l))
	require.EqualError(t, o.err, "listener: accept: invalid argument")
	require.Zero(t, a.places.Conns())
}

// What a leaf has made outlives the leaf: act.Seq closes its actions as they finish.
func TestAConnectionNotTakenIsAbortedWithTheTask(t *testing.T) {
	for name, hold := range map[string]func(a act.Action) act.Action{
		"alone":     func(a act.Action) act.Action { return a },
		"in a Seq":  func(a act.Action) act.Action { return act.Seq(a) },
		"in an All": func(a act.Action) act.Action { return act.All(a, &listener.Sleep{For: time.Millisecond}) },
		"Within":    func(a act.Action) act.Action { return listener.Within(servertest.Timeout, a) },
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			places := monitor.NewConnLimiter(1)
			a := door(l, places)
			o := spawn(l.S, hold(a))
			peer := servertest.Dial(t, a.From.Addr())
			require.Equal(t, act.Done, o.over(l))
			require.Zero(t, places.Conns())
			_, err := io.Copy(io.Discard, peer)
			require.ErrorIs(t, err, syscall.ECONNRESET)
			require.Nil(t, a.Conn())
			require.NoError(t, a.From.Close())
		})
	}
}

// What was broken: with all places taken no task waited for the acceptor, and its end was seen only when a
// place became free.
func TestClosingAnAcceptorAtTheLimitFailsAccept(t *testing.T) {
	for name, backlog := range map[string]int{"an empty backlog": 0, "clients in the backlog": 2} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			a := door(l, monitor.NewConnLimiter(1))
			o, conns := acceptAll(l, a)
			servertest.Dial(t, a.From.Addr())
			l.Until("the only place is taken", func() bool { return len(*conns) == 1 })
			for range backlog {
				servertest.Dial(t, a.From.Addr())
			}
			l.For(0)
			turns := o.turns
			l.For(0)
			require.Equal(t, turns, o.turns, "it does not spin")
			require.NoError(t, a.From.Close())
			require.Equal(t, act.Failed, o.over(l))
			require.ErrorIs(t, o.err, net.ErrClosed)
			require.EqualError(t, o.err, "listener: accept: use of closed network connection")
			require.Equal(t, 1, a.places.Conns(), "the place is that of the connection")
		})
	}
}
