package process_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/process"
)

func TestATimerIsNeverEarly(t *testing.T) {
	for _, d := range []time.Duration{1, time.Microsecond, time.Millisecond - 1, time.Second, time.Minute + 1, 25 * time.Hour} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 2)
			x.later(time.Hour) // the timer counts from now, not from 0
			expired := 0
			x.do(x.spawn(process.Options{}), func(p *jobSelf) { p.After(d, func(*jobSelf) { expired++ }) })
			x.later(0)
			require.Zero(t, expired)
			x.later(d - 1)
			require.Zero(t, expired)
			x.later(1)
			require.Equal(t, 1, expired)
			x.later(1000 * time.Hour)
			require.Equal(t, 1, expired, "once")
		})
	}
}

// A turn that has taken long does not make the timer early.
func TestATimerCountsFromAfter(t *testing.T) {
	x := newStepped(t, 1)
	expired := false
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		x.clock.pass(time.Second)
		p.After(time.Second, func(*jobSelf) { expired = true })
	})
	x.later(time.Second - 1)
	require.False(t, expired)
	x.later(1)
	require.True(t, expired)
}

func TestTimersThatAreDueAtOnce(t *testing.T) {
	for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 1)
			x.later(time.Hour)
			log := ""
			x.do(x.spawn(process.Options{}), func(p *jobSelf) {
				p.After(d, func(*jobSelf) { log += " timer" })
				log += "turn" // the timer sends a message; it calls nothing
			})
			require.Equal(t, "turn timer", log)
		})
	}
}

func TestTimersThatAreNeverDue(t *testing.T) {
	for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 / 2} {
		t.Run(d.String(), func(t *testing.T) {
			x := newStepped(t, 1)
			x.later(time.Hour)
			ref := x.spawn(process.Options{})
			var a process.Operation
			x.do(ref, func(p *jobSelf) { a = p.After(d, func(*jobSelf) { t.Error("too early") }) })
			x.later(1000 * time.Hour)
			x.do(ref, func(*jobSelf) { require.True(t, a.Cancel()) })
		})
	}
}

func TestTimersExpireInOrder(t *testing.T) {
	x := newStepped(t, 1)
	log := ""
	x.do(x.spawn(process.Options{}), func(p *jobSelf) {
		for i, d := range []time.Duration{3, 1, 2, 1, 0, 3} {
			p.After(d*time.Second, func(*jobSelf) { log += fmt.Sprintf("%d@%d ", i, x.clock.Monotonic()/time.Second) })
		}
	})
	for range 3 {
		x.later(time.Second)
	}
	require.Equal(t, "4@0 1@1 3@1 2@2 0@3 5@3 ", log)
}

func TestNoBoundRefusesATimer(t *testing.T) {
	for _, full := range []process.Overflow{process.Block, process.Drop, process.Reject} {
		x := newStepped(t, 1)
		ref, log := x.spawn(process.Options{Limit: 1, Overflow: full}), ""
		x.do(ref, func(p *jobSelf) {
			p.After(time.Second, func(*jobSelf) { log += "timer " })
			p.After(time.Second, func(*jobSelf) { log += "timer " })
		})
		require.NoError(t, ref.Send(x.sys, func(*jobSelf) { log += "message " }))
		x.clock.pass(time.Second)
		x.only(0)
		require.Contains(t, []string{"message timer timer ", "timer timer message "}, log)
		require.Zero(t, x.sys.Stats().Dropped)
	}
}

// The timer expires on the scheduler where it was set, and its message finds the process on another.
func TestATimerAfterAMove(t *testing.T) {
	x := newStepped(t, 2)
	ref, expired := x.spawn(process.Options{}), -1
	x.on(0, ref, func(p *jobSelf) { p.After(time.Second, func(p *jobSelf) { expired = p.Scheduler().Index() }) })
	x.on(1, ref, func(*jobSelf) {})
	x.clock.pass(time.Second - 1)
	x.all()
	require.Equal(t, -1, expired)
	x.clock.pass(1)
	x.only(1) // the timer is on the other
	require.Equal(t, -1, expired)
	x.all()
	require.Equal(t, 0, expired)
}

func TestCancelOfATimer(t *testing.T) {
	for _, there := range []int{0, 1} {
		t.Run([]string{"where it was set", "on the other scheduler"}[there], func(t *testing.T) {
			x := newStepped(t, 2)
			ref := x.spawn(process.Options{})
			var a, expires process.Operation
			expired := 0
			x.on(0, ref, func(p *jobSelf) {
				a = p.After(time.Second, func(*jobSelf) { t.Error("it was stopped") })
				expires = p.After(time.Second, func(*jobSelf) { expired++ })
			})
			x.on(there, ref, func(*jobSelf) {
				require.True(t, a.Cancel())
				require.False(t, a.Cancel(), "a second call")
			})
			x.later(time.Second)
			require.Equal(t, 1, expired)
			x.on(there, ref, func(*jobSelf) { require.False(t, expires.Cancel(), "it has expired") })
		})
	}
}

// A timer that is due can be cancelled until its message is made.
func TestCancelOfATimerThatIsDue(t *testing.T) {
	for _, first := range []int{0, 1} {
		x := newStepped(t, 2)
		ref := x.spawn(process.Options{})
		var a process.Operation
		expired, stopped := 0, false
		x.on(0, ref, func(p *jobSelf) { a = p.After(time.Second, func(*jobSelf) { expired++ }) })
		x.clock.pass(time.Second)
		require.NoError(t, ref.Send(x.sys, func(*jobSelf) { stopped = a.Cancel() }))
		x.only(first) // the timer is on 0, and expires there before processes run
		x.all()
		require.Equal(t, first == 1, stopped)
		require.Equal(t, first == 0, expired == 1)
	}
}

func TestTheEndOfAProcessStopsItsTimers(t *testing.T) {
	for _, there := range []int{0, 1} {
		t.Run([]string{"where it was set", "on the other scheduler"}[there], func(t *testing.T) {
			x := newStepped(t, 2)
			ref := x.spawn(process.Options{})
			x.on(0, ref, func(p *jobSelf) { p.After(time.Second, func(*jobSelf) { t.Error("the process has ended") }) })
			_, set := x.g.Schedulers()[0].NextDeadline()
			require.True(t, set)
			x.on(there, ref, exits)
			x.all()
			_, set = x.g.Schedulers()[0].NextDeadline()
			require.False(t, set, "the timer is not kept until it is due")
			x.later(time.Second)
		})
	}
}

// Long timers of short processes take no memory after the end, wherever the process has ended.
func TestTimersOfEndedProcessesAreForgotten(t *testing.T) {
	x := newStepped(t, 2)
	lives := func(n int) {
		for i := range n {
			ref := x.spawn(process.Options{})
			x.on(0, ref, func(p *jobSelf) { p.After(1000*time.Hour, exits) })
			x.on(i%2, ref, exits)
		}
		x.all()
	}
	lives(500)
	before := heapInUse()
	lives(2000)
	require.Less(t, heapInUse()-before, int64(1<<17))
	_, set := x.g.Schedulers()[0].NextDeadline()
	require.False(t, set)
}

// A scheduler in a long turn is not woken: it stops the timers before it becomes idle.
func TestATimerCancelledElsewhereDuringALongTurnIsRemoved(t *testing.T) {
	sys := process.New(process.Config{})
	var keeper process.Ref[int] // keeps Run from returning
	r := servertest.Start(t, act.Config{Schedulers: 2}, sys.Setup, func(s *act.Scheduler) error {
		if s.Index() == 0 {
			keeper = process.Spawn(sys, process.Handler[int](func(*process.Self[int], int) {}), process.Options{})
		}
		return nil
	})
	set := make(chan int, 1)
	owner := process.Spawn(sys, process.Handler[string](func(p *process.Self[string], _ string) {
		p.After(time.Hour, "")
		set <- p.Scheduler().Index()
	}), process.Options{})
	require.NoError(t, owner.Send(sys, ""))
	there := servertest.Receive(t, set)
	begun, release := make(chan int, 2), [2]chan bool{make(chan bool), make(chan bool)}
	for range 2 { // one on each scheduler
		process.Spawn(sys, process.Func[int](func(p *process.Self[int]) act.Directive {
			at := p.Scheduler().Index()
			begun <- at
			<-release[at]
			return act.Done
		}), process.Options{})
	}
	require.Equal(t, 1, servertest.Receive(t, begun)+servertest.Receive(t, begun))
	ended := process.Ended(owner)
	close(release[1-there])
	owner.Kill()
	require.Eventually(t, ended.Resolved, servertest.Timeout, time.Millisecond)
	close(release[there])
	require.Eventually(t, func() (none bool) {
		r.On(there, func(s *act.Scheduler) { _, some := s.NextDeadline(); none = !some })
		return none
	}, servertest.Timeout, time.Millisecond)
	keeper.Kill()
	require.NoError(t, r.End())
}
