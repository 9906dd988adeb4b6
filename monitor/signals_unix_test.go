//go:build unix

package monitor_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/shutdown"
)

// raise sends a signal to this process.
func raise(sig syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), sig); err != nil {
		panic(err)
	}
}

// stubborn is a task that only waits, and reports its orders.
type stubborn struct{ told chan<- shutdown.Order }

func (s *stubborn) Act(t *act.Task) act.Directive {
	t.Waker()
	return act.Wait
}

func (s *stubborn) Stop(_ *act.Task, o shutdown.Order) { s.told <- o }

// What was broken: after a shutdown that was withdrawn, the next signal was taken for a second one, and dropped
// everything.
func TestAfterAWithdrawalTheNextSignalIsTheFirst(t *testing.T) {
	told := make(chan shutdown.Order, 2)
	terms := shutdown.Policy{Time: 2 * servertest.Timeout, Announce: servertest.Timeout}
	r := servertest.Start(t, act.Config{Schedulers: 1}, monitor.Signals(terms), func(s *act.Scheduler) error {
		s.Spawn(&stubborn{told})
		return nil
	})
	for n := range 3 {
		raise(syscall.SIGTERM)
		require.Eventually(t, func() bool { return r.Logs.FilterMessage("ending").Len() == n+1 && r.Group.Order() != nil }, servertest.Timeout, time.Millisecond)
		require.True(t, r.Group.Withdraw(r.Group.Order()))
	}
	require.Empty(t, told)
	raise(syscall.SIGTERM)
	require.Eventually(t, func() bool { return r.Group.Order() != nil }, servertest.Timeout, time.Millisecond)
	raise(syscall.SIGINT)
	var cut *shutdown.Cut
	require.ErrorAs(t, r.End(), &cut)
	require.Equal(t, shutdown.Halt, cut.Order.Policy().Kind)
	require.NoError(t, r.Group.Close())
}

func init() {
	children["second"] = func() { impatient(syscall.SIGTERM, syscall.SIGTERM) }
	children["second, another"] = func() { impatient(syscall.SIGINT, syscall.SIGTERM) }
	children["third"] = func() { impatient(syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM) }
	children["third, another"] = func() { impatient(syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT) }
	children["afterwards"] = func() {
		err := act.Run(context.Background(), act.Config{Schedulers: 1, Logger: zap.NewNop()}, monitor.Signals(shutdown.Policy{}))
		fmt.Println("Run:", err)
		raise(syscall.SIGTERM)
		time.Sleep(servertest.Timeout)
		fmt.Println("still there")
	}
	// What was broken: the first signal of the second Run was taken for the second one and ended the process.
	children["again"] = func() {
		g := act.NewGroup(act.Config{Schedulers: 1, Logger: zap.NewNop()})
		for range 2 {
			err := g.Run(context.Background(), monitor.Signals(shutdown.Policy{Kind: shutdown.Unbounded}), func(s *act.Scheduler) error {
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					if t.Order() != nil {
						return act.Done
					}
					raise(syscall.SIGTERM)
					t.Waker()
					return act.Wait
				}))
				return nil
			})
			fmt.Println("Run:", err)
		}
		fmt.Println("Close:", g.Close())
	}
}

// impatient is a server that does not end by itself and gets these signals, each when the previous one has begun its
// shutdown. If there are three, it is in a turn that does not end.
func impatient(signals ...syscall.Signal) {
	log := zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "m"}), os.Stdout, zap.WarnLevel))
	var sent atomic.Int64
	next := func() {
		if i := int(sent.Add(1)) - 1; i < len(signals) {
			raise(signals[i])
		}
	}
	err := act.Run(context.Background(), act.Config{Schedulers: 1, Logger: log},
		func(s *act.Scheduler) error {
			s.Internals().ObserveInbox(func(o shutdown.Order) {
				if o != nil {
					next()
				}
			})
			return nil
		},
		monitor.Signals(shutdown.Policy{Kind: shutdown.Unbounded}),
		func(s *act.Scheduler) error {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				t.Waker()
				if t.Order() == nil {
					next()
				}
				if len(signals) > 2 {
					time.Sleep(servertest.Timeout)
				}
				return act.Wait
			}))
			return nil
		})
	fmt.Println("Run:", err)
}

func TestASecondSignalCutsWhatIsLeft(t *testing.T) {
	for child, sig := range map[string]string{"second": "terminated", "second, another": "terminated"} {
		out, err := runChild(t, child)
		require.NoError(t, err, out)
		require.Contains(t, out, fmt.Sprintf("a second signal drops what is left\t{\"signal\": %q}\n", sig))
		require.Contains(t, out, "Run: shutdown: dropped 1 task")
		require.Contains(t, out, "policy: halt, then drop")
	}
}

func TestAThirdSignalEndsTheProcessAtOnce(t *testing.T) {
	for child, status := range map[string]int{"third": 143, "third, another": 130} {
		out, err := runChild(t, child)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, out)
		require.Equal(t, status, exit.ExitCode(), out)
		require.Contains(t, out, fmt.Sprintf("ended at once by a third signal\t{\"signal\": %q}\n", syscall.Signal(status-128)))
	}
}

func TestAfterTheGroupSignalsHaveTheirUsualEffect(t *testing.T) {
	out, err := runChild(t, "afterwards")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGTERM, exit.Sys().(syscall.WaitStatus).Signal())
	require.Equal(t, "Run: <nil>\n", out)
}

func TestEachRunHasAFirstSignalOfItsOwn(t *testing.T) {
	out, err := runChild(t, "again")
	require.NoError(t, err)
	require.Equal(t, "Run: <nil>\nRun: <nil>\nClose: <nil>\n", out)
}

// heard hands over the signals that it is called for.
type heard struct{ to chan os.Signal }

func (h heard) Signal(sig os.Signal) { h.to <- sig }

// A Group that runs again has its set-up functions called again, and one that is closed gets no signals any more.
func TestOnSignalCallsOnceForEachSignal(t *testing.T) {
	got := make(chan os.Signal, 16)
	g := act.NewGroup(act.Config{Schedulers: 2, Logger: zap.NewNop()})
	for range 2 {
		require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
			return monitor.OnSignal(heard{got}, syscall.SIGUSR2)(s)
		}), "it does not keep Run from returning")
		for range 3 {
			raise(syscall.SIGUSR2)
			require.Equal(t, os.Signal(syscall.SIGUSR2), servertest.Receive(t, got))
		}
	}
	catch := make(chan os.Signal, 1) // it would end the process when the Group is closed
	signal.Notify(catch, syscall.SIGUSR2)
	defer signal.Stop(catch)
	require.NoError(t, g.Close())
	raise(syscall.SIGUSR2)
	require.Equal(t, os.Signal(syscall.SIGUSR2), servertest.Receive(t, catch))
	select {
	case <-got:
		require.FailNow(t, "called for a signal twice, or after Close")
	default:
	}
}

// named says when it is called, and when it returns.
type named struct {
	name string
	to   chan string
}

func (n named) Signal(os.Signal) {
	n.to <- n.name
	n.to <- n.name
}

func TestHandlersOfASignalAreCalledInTheOrderOfTheirSetUp(t *testing.T) {
	got := make(chan string)
	g := act.NewGroup(act.Config{Schedulers: 2, Logger: zap.NewNop()})
	for _, order := range []string{"abc", "cab"} { // the second time all of them are there
		var setup []func(*act.Scheduler) error
		for _, name := range order {
			setup = append(setup, monitor.OnSignal(named{string(name), got}, syscall.SIGUSR1, syscall.SIGUSR2))
		}
		require.NoError(t, g.Run(t.Context(), setup...))
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
			raise(sig)
			for _, name := range order {
				require.Equal(t, string(name), servertest.Receive(t, got))
				require.Equal(t, string(name), servertest.Receive(t, got), "it has returned before the next one is called")
			}
		}
	}
	require.NoError(t, g.Close())
}
