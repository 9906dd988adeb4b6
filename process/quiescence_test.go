package process_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/process"
)

// activity counts what the two schedulers of a Group do, and knows which of them sleep.
type activity struct {
	turns, passes, looks, remoteEvents atomic.Int64
	asleep                             [2]atomic.Bool
}

func (a *activity) trace() *act.Trace {
	return &act.Trace{
		TurnStart: func(*act.Task) { a.turns.Add(1) },
		Pass: func(s *act.Scheduler) {
			a.asleep[s.Index()].Store(false)
			a.passes.Add(1)
		},
		Idle: func(s *act.Scheduler, atMost time.Duration) {
			a.looks.Add(1)
			a.asleep[s.Index()].Store(atMost != 0)
		},
		RemoteEvent: func(*act.Scheduler) { a.remoteEvents.Add(1) },
	}
}

func (a *activity) counts() [4]int64 {
	return [4]int64{a.turns.Load(), a.passes.Load(), a.looks.Load(), a.remoteEvents.Load()}
}

// sleeps reports whether both schedulers sleep.
func (a *activity) sleeps() bool { return a.asleep[0].Load() && a.asleep[1].Load() }

// steady waits until both schedulers sleep and the counts stay the same for 50 ms.
func (a *activity) steady(t *testing.T) [4]int64 {
	t.Helper()
	for end := time.Now().Add(servertest.Timeout); time.Now().Before(end); {
		before := a.counts()
		time.Sleep(50 * time.Millisecond)
		if a.sleeps() && a.counts() == before {
			return before
		}
	}
	require.FailNow(t, "never steady")
	return [4]int64{}
}

// While all processes sleep, no scheduler takes a turn, begins a pass or is woken. Nothing grows with the number of
// sleeping processes.
func TestSleepingProcessesWakeNothing(t *testing.T) {
	tier.Need(t, tier.Full, "watches the threads for half a second")
	var a activity
	const n = 10_000
	refs := make([]process.Ref[int], n)
	var received atomic.Int64
	r := startWith(t, act.Config{Schedulers: 2, Trace: a.trace()}, process.Config{}, func(sys *process.System) {
		for i := range refs {
			refs[i] = process.Spawn(sys, process.Handler[int](func(*process.Self[int], int) { received.Add(1) }), process.Options{})
		}
	})
	for i := range refs {
		require.NoError(t, refs[i].Send(r.sys, i))
	}
	r.quiescent()
	require.EqualValues(t, n, received.Load())
	atRest := a.steady(t)
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, atRest, a.counts(), "turns, passes, looks, wake-ups")

	require.NoError(t, refs[0].Send(r.sys, 0))
	r.quiescent()
	after := a.steady(t)
	require.EqualValues(t, n+1, received.Load())
	t.Logf("one message, and to see that nothing follows: %d turns, %d passes, %d looks, %d wake-ups",
		after[0]-atRest[0], after[1]-atRest[1], after[2]-atRest[2], after[3]-atRest[3])
	require.LessOrEqual(t, after[0]-atRest[0], int64(20))
	for _, to := range refs {
		to.Kill()
	}
	r.end()
}

// When all schedulers are idle, a message wakes one of them, once.
func TestAMessageWakesOneScheduler(t *testing.T) {
	tier.Need(t, tier.Full, "counts wake-ups of threads that fall asleep in time")
	const n = 100
	var a activity
	got := make(chan int, 1)
	var to process.Ref[int]
	r := startWith(t, act.Config{Schedulers: 2, Trace: a.trace()}, process.Config{}, func(sys *process.System) {
		to = process.Spawn(sys, process.Handler[int](func(_ *process.Self[int], m int) { got <- m }), process.Options{})
	})
	r.quiescent()
	before := a.steady(t)
	for i := range n {
		require.NoError(t, to.Send(r.sys, i))
		servertest.Receive(t, got)
		for end := time.Now().Add(servertest.Timeout); !a.sleeps() && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
	}
	after := a.steady(t)
	t.Logf("%d messages, %d wake-ups, %d turns", n, after[3]-before[3], after[0]-before[0])
	require.LessOrEqual(t, after[3]-before[3], int64(n+n/10), "one that is about to sleep may be woken beside the other")
	to.Kill()
	r.end()
}

// The future is resolved in the next turn of the scheduler.
func TestQuiescent(t *testing.T) {
	t.Run("with no process at all", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		f := x.sys.Quiescent()
		require.False(t, f.Resolved(), "the scheduler has had no turn")
		x.step()
		require.True(t, f.Resolved())
	})
	t.Run("not while a process yields", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		release := true
		process.Spawn(x.sys, process.Func[int](func(*process.Self[int]) act.Directive {
			if release {
				return act.Yield
			}
			return act.Wait
		}), process.Options{})
		f := x.sys.Quiescent()
		x.some(1000)
		require.False(t, f.Resolved())
		release = false
		x.step()
		require.True(t, f.Resolved())
	})
	t.Run("not while messages go round", func(t *testing.T) {
		x := newTraced(t, process.Config{Batch: 1})
		var to process.Ref[int]
		to = x.handler(func(p *process.Self[int], m int) {
			if m > 0 {
				_ = to.Send(p, m-1)
			}
		})
		x.step()
		x.send(to, 100)
		f := x.sys.Quiescent()
		x.some(3)
		require.False(t, f.Resolved())
		x.step()
		require.True(t, f.Resolved())
	})
	t.Run("each time anew", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		to := x.sleeper("t")
		x.step()
		for range 3 {
			f, g := x.sys.Quiescent(), x.sys.Quiescent()
			require.False(t, f.Resolved())
			x.step()
			require.True(t, f.Resolved())
			require.True(t, g.Resolved())
			x.send(to, 1)
			h := x.sys.Quiescent()
			require.Equal(t, "t", x.step())
			require.True(t, h.Resolved())
		}
	})
	t.Run("tasks do not count", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		x.busyTask()
		f := x.sys.Quiescent()
		x.some(20)
		require.True(t, f.Resolved())
	})
	t.Run("one that waits for room sleeps", func(t *testing.T) {
		x := newTraced(t, process.Config{Limit: 1})
		deaf := process.Spawn(x.sys, process.Func[int](func(*process.Self[int]) act.Directive { return act.Wait }), process.Options{})
		process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			_ = deaf.Send(p, 1)
			return act.Yield
		}), process.Options{})
		f := x.sys.Quiescent()
		x.step()
		require.True(t, f.Resolved())
	})
	t.Run("not before a timer has come", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		x.timer(func(p *process.Self[int]) { p.After(time.Hour, 1) })
		f := x.sys.Quiescent()
		x.step()
		require.False(t, f.Resolved())
		x.clock.pass(time.Hour)
		require.Equal(t, "1", x.step())
		require.True(t, f.Resolved())
	})
	t.Run("not before a timer is stopped", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		var set process.Operation
		to := x.timer(func(p *process.Self[int]) {
			if set == nil {
				set = p.After(time.Hour, 1)
			} else {
				require.True(t, set.Cancel())
			}
		})
		f := x.sys.Quiescent()
		x.step()
		require.False(t, f.Resolved())
		x.send(to, 0)
		x.step()
		require.True(t, f.Resolved())
	})
	t.Run("not before the owner of a timer has ended", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		to := x.timer(func(p *process.Self[int]) { p.After(time.Hour, 1) })
		f := x.sys.Quiescent()
		x.step()
		require.False(t, f.Resolved())
		to.Kill()
		x.step()
		require.True(t, f.Resolved())
	})
	t.Run("not before what is awaited has come", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		awaited := future.New[int](x.s)
		x.timer(func(p *process.Self[int]) { process.Await(p, awaited, func(v int, _ error) int { return v }) })
		f := x.sys.Quiescent()
		x.step()
		require.False(t, f.Resolved())
		require.NoError(t, awaited.Resolve(7))
		require.Equal(t, "7", x.step())
		require.True(t, f.Resolved())
	})
	t.Run("not before the last operation is cancelled, wherever that is done", func(t *testing.T) {
		x := newTraced(t, process.Config{})
		var operation process.Operation
		x.timer(func(p *process.Self[int]) {
			if operation == nil {
				operation = process.Await(p, future.New[int](x.s), func(v int, _ error) int { return v })
			}
		})
		f := x.sys.Quiescent()
		x.step()
		require.False(t, f.Resolved())
		require.True(t, operation.Cancel())
		x.step()
		require.True(t, f.Resolved())
	})
}

// timer spawns a process that calls f in its first turn and for each 0, and notes any other message.
func (x *traced) timer(f func(p *process.Self[int])) process.Ref[int] {
	begun := false
	return process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		if !begun {
			begun = true
			f(p)
		}
		for {
			m, ok := p.Receive()
			switch {
			case !ok:
				return act.Wait
			case m == 0:
				f(p)
			default:
				x.note(string(rune('0' + m)))
			}
		}
	}), process.Options{})
}
