package monitor_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

const everything = netpoll.In | netpoll.Out | netpoll.PeerClosed | netpoll.Priority | netpoll.Partial | netpoll.Error

func TestEachSchedulerHasOneEngineThatDoesNotKeepRun(t *testing.T) {
	l := servertest.New(t, act.Config{})
	require.Same(t, l.Engine(), l.Engine())
	stream, _ := l.Stream("tcp")
	require.NoError(t, l.S.Run(), "a connection that no task waits for does not keep Run from returning")
	require.Panics(t, func() { engine.Below.Put(l.S, l.OS) }, "the first engine may be in use")
	stream.Abort()
}

func TestAPollerThatCannotBeOpenedIsAnErrorAndMayBeTriedAgain(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.OS.Fail = servertest.Failing("open", syscall.EMFILE)
	_, err := monitor.EngineOf(l.S)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.EqualError(t, err, "monitor: opening a poller: too many open files")
	l.OS.Fail = nil
	_, err = monitor.EngineOf(l.S)
	require.NoError(t, err)
}

// A scheduler that cannot see what its descriptors do is of no use any more.
func TestAnErrorOfThePollerEndsRun(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.Engine()
	l.OS.Fail = servertest.Failing("wait", syscall.EBADF)
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive { t.Waker(); return act.Wait }))
	err := l.S.Run()
	require.ErrorIs(t, err, syscall.EBADF)
	require.ErrorContains(t, err, "monitor: polling: ")
	require.Equal(t, err, l.S.Run(), "and stays ended")
}

func TestAnEventForAClosedAndReusedDescriptorIsIgnored(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.Engine() // its descriptors are not to come between
	fd, _ := l.Pair("tcp")
	first := l.Adopt(fd, loopback)
	stale := l.OS.Tag(fd)
	spare, other := l.Pair("tcp") // made before the close, so that its number is another
	first.Abort()
	require.NoError(t, other.Close())
	require.NoError(t, l.OS.Close(spare))

	again, peer := l.Pair("tcp")
	require.Equal(t, fd, again, "the system gives the number again")
	second := l.Adopt(again, loopback)
	defer second.Abort()
	require.Equal(t, uint32(stale), uint32(l.OS.Tag(again)), "and the engine the slot")
	require.NotEqual(t, stale, l.OS.Tag(again))

	told := 0
	l.OS.Events = func(got []netpoll.Event) []netpoll.Event {
		told++
		return append(got, netpoll.Event{Tag: stale, Ready: everything})
	}
	woken := 0
	l.S.Spawn(servertest.Waits(func(t *act.Task) { second.AwaitInput(t.Waker()) }, &woken))
	l.OS.Forget()
	l.Until("five late events", func() bool { return told >= 5 })
	require.Zero(t, woken)
	_, err := second.Lend(1)
	require.Equal(t, monitor.ErrWouldBlock, err)
	require.Zero(t, l.OS.Count("receive"))

	servertest.Send(t, peer, "for the second")
	l.Until("a wake-up", func() bool { return woken == 1 })
}

func TestLoansOfOneTurnDoNotOverlap(t *testing.T) {
	const n = 40
	l := servertest.New(t, act.Config{})
	streams := make([]monitor.Stream, n)
	for i := range streams {
		stream, peer := l.Stream([]string{"tcp", "unix"}[i%2])
		defer stream.Abort()
		streams[i] = stream
		servertest.Send(t, peer, text(i))
	}
	l.Turn(func(*act.Task) {
		loans := make([][]byte, n)
		for total := 0; total < n; l.Engine().(facts.Idler).Idle(0) { // until all are known to be ready
			for i, stream := range streams {
				if len(loans[i]) > 0 {
					continue
				}
				if part, err := stream.Lend(64 << 10); err == nil {
					loans[i] = part
					total++
				}
			}
		}
		for i, loan := range loans {
			require.Equal(t, text(i)[:len(loan)], string(loan), "stream %d", i)
			require.Equal(t, len(loan), cap(loan), "an append must not reach the neighbour")
		}
	})
}

// text returns several KiB, different for each argument.
func text(i int) string { return strings.Repeat(fmt.Sprintf("<%d>", i), 2000) }

// What was broken: the engine took its loans back at its own place among the functions of AtTurnEnd; later functions
// received over loans that were not copied yet.
func TestALoanLastsUntilAllFunctionsOfAtTurnEndHaveRun(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a, peerA := l.Stream("tcp")
	b, peerB := l.Stream("tcp")
	defer a.Abort()
	defer b.Abort()
	servertest.Send(t, peerA, "the first's bytes")
	servertest.Send(t, peerB, "something else!!!")
	var loan, other []byte
	var rest []byte
	l.Until("both loans", func() bool {
		l.Turn(func(*act.Task) {
			lent, err := a.Lend(100)
			if err != nil {
				return
			}
			loan = lent
			l.S.Internals().AtTurnEnd(servertest.TurnEnd(func() {
				for err := monitor.ErrWouldBlock; err == monitor.ErrWouldBlock; {
					if other, err = b.Lend(100); err != nil {
						l.Engine().(facts.Idler).Idle(time.Millisecond)
					}
				}
				l.S.Internals().AtTurnEnd(servertest.TurnEnd(func() { rest = slices.Clone(other) }))
			}))
			l.S.Internals().AtTurnEnd(servertest.TurnEnd(func() { loan = slices.Clone(loan) }))
		})
		return loan != nil
	})
	require.Equal(t, "the first's bytes", string(loan))
	require.Equal(t, "something else!!!", string(rest))
	l.Turn(func(*act.Task) { require.Zero(t, monitor.Lent(l.Engine()), "and not longer") })
}

func TestEverythingIsClosedWithTheScheduler(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp")
	a := open(l, nil)
	linger, _ := l.Stream("tcp")
	linger.Close(time.Hour)
	require.Error(t, l.S.Close(), "a Cut: one lingers")

	_, err := peer.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	requireClosed(t, stream)
	requireClosed(t, linger)
	_, err = a.Accept()
	require.ErrorIs(t, err, errClosed)
}
