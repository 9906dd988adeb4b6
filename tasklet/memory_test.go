package tasklet_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/tasklet"
	"github.com/stretchr/testify/require"
)

// later is an Executor whose functions are called when steps finds nothing else to do.
type later struct {
	mu sync.Mutex
	fs []func()
}

func (l *later) Execute(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fs = append(l.fs, f)
}

func (l *later) run() (ran bool) {
	l.mu.Lock()
	fs := l.fs
	l.fs = nil
	l.mu.Unlock()
	for _, f := range fs {
		f()
	}
	return len(fs) > 0
}

// steps takes turns and calls the functions of exec until there are no more.
func steps(t testing.TB, s *act.Scheduler, exec *later) {
	t.Helper()
	for n, ran := 1, false; n > 0 || ran; {
		var err error
		n, err = s.Step(100)
		require.NoError(t, err)
		ran = n == 0 && exec.run()
	}
}

// alone fails the test if it is entered twice at once.
type alone struct {
	in     atomic.Bool
	phases atomic.Int64
	f      func(t tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive
	twice  atomic.Int64
}

func (a *alone) Task(r *tasklet.Runner) tasklet.Directive {
	if !a.in.CompareAndSwap(false, true) {
		a.twice.Add(1)
		return done
	}
	defer a.in.Store(false)
	a.phases.Add(1)
	return a.f(a, r)
}

// Another goroutine resumes the tasklet, sometimes before its phase answers Wait and sometimes after.
func TestAResumptionIsNeverLost(t *testing.T) {
	tries := tier.Choose(10_000, 10_000, 100_000)
	r := tasklet.NewRunner(act.Config{})
	hand, left := make(chan tasklet.Rescheduler, 1), tries
	x := &alone{f: func(t tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		if left--; left < 0 {
			return done
		}
		hand <- r.Suspend(t)
		if left%3 == 0 {
			runtime.Gosched()
		}
		return wait
	}}
	go func() {
		for i := range tries {
			d := sync_
			if i%5 == 0 {
				d = async
			}
			_ = (<-hand).Resume(d)
		}
	}()
	schedule(t, r, sync_, x)
	servertest.InTime(t, func() { require.NoError(t, r.Run()) })
	require.EqualValues(t, tries+1, x.phases.Load())
	require.Zero(t, x.twice.Load())
}

// Goroutines resume, schedule and run it under several runners.
func TestATaskletIsNeverInTwoPhases(t *testing.T) {
	const phases = 10_000
	first, second := tasklet.NewRunner(act.Config{}), tasklet.NewRunner(act.Config{})
	shared := tasklet.Inline()
	x := &alone{}
	x.f = func(tasklet.Tasklet, *tasklet.Runner) tasklet.Directive {
		n := x.phases.Load()
		if n%7 == 0 {
			runtime.Gosched()
		}
		if n > phases {
			return done
		}
		return []tasklet.Directive{sync_, wait, sync_, wait, async}[rand.N(5)]
	}
	holds := []tasklet.Rescheduler{first.Suspend(waits()), second.Suspend(waits())}
	var runs, storm sync.WaitGroup
	for _, r := range []*tasklet.Runner{first, second} {
		runs.Go(func() { _ = r.Run() })
		for _, d := range []tasklet.Directive{sync_, async} {
			storm.Go(func() {
				for x.phases.Load() < phases {
					_ = r.Schedule(x, d)
					_ = r.Suspend(x).Resume(d)
					runtime.Gosched()
				}
			})
		}
		storm.Go(func() {
			for x.phases.Load() < phases {
				_ = tasklet.With(r, x)
				_ = tasklet.With(shared, x)
				runtime.Gosched()
			}
		})
	}
	servertest.InTime(t, storm.Wait)
	for i, r := range []*tasklet.Runner{first, second} {
		require.NoError(t, r.Schedule(x, done))
		require.NoError(t, holds[i].Resume(done))
	}
	servertest.InTime(t, runs.Wait)
	require.Zero(t, x.twice.Load())
	require.False(t, x.in.Load())
}

// An entry whose tasklet is in a phase under another runner waits for it without spinning, and then goes on.
func TestATaskletWaitsForItsPhaseUnderAnotherRunner(t *testing.T) {
	for _, d := range []tasklet.Directive{sync_, async} {
		h := &history{}
		in, out := make(chan bool), make(chan bool)
		x := tasklet.New(func(*tasklet.Runner) tasklet.Directive {
			h.note("T")
			if h.count("T") == 1 {
				in <- true
				<-out
			}
			return done
		})
		other := tasklet.NewRunner(act.Config{})
		hold := other.Suspend(waits())
		var ends sync.WaitGroup
		ends.Go(func() { _ = tasklet.With(tasklet.Inline(), x) })
		<-in
		require.ErrorIs(t, tasklet.With(other, x), tasklet.ErrInPhase)
		stranger := tasklet.NewRunner(act.Config{})
		require.ErrorIs(t, tasklet.With(stranger, x), tasklet.ErrInPhase)
		servertest.InTime(t, func() { require.NoError(t, stranger.Run(), "x is no member") })
		ends.Go(func() { _ = other.Run() })
		require.Eventually(t, func() bool { return other.Act() != nil }, servertest.Timeout, 1e6)
		schedule(t, other, d, x)
		schedule(t, other, sync_, tasklet.New(func(*tasklet.Runner) tasklet.Directive { h.note("B"); close(out); return done }))
		require.NoError(t, hold.Resume(done))
		servertest.InTime(t, ends.Wait)
		require.Equal(t, "TBT", h.take())
	}
}

// spin is a tasklet that always answers Sync.
type spin struct{ n int }

func (p *spin) Task(*tasklet.Runner) tasklet.Directive { p.n++; return tasklet.Sync }

func TestAllocations(t *testing.T) {
	a := act.New(act.Config{})
	defer a.Close()
	r := tasklet.RunnerOf(a)
	x, y := &spin{}, &spin{}
	right := r.Suspend(y)
	schedule(t, r, tasklet.Sync, x)
	_, err := a.Step(1000)
	require.NoError(t, err)
	for name, do := range map[string]func(){
		"a SYNC phase": func() { _, _ = a.Step(1) },
		"Schedule":     func() { _ = r.Schedule(x, tasklet.Sync); _, _ = a.Step(10) },
		"a resumption": func() { _ = r.Schedule(y, tasklet.Wait); _ = right.Resume(tasklet.Sync); _, _ = a.Step(200) },
	} {
		do()
		require.Zero(t, testing.AllocsPerRun(100, do), name)
	}
}
