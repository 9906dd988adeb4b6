package tasklet_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/tasklet"
)

// Directives that are given during a phase. A phase of T gives all of them, in order, and answers; the history shows
// the phases of T, and of B, which is scheduled after it.
func TestDirectivesGivenDuringAPhase(t *testing.T) {
	type word = func(s *tasklet.Runner, t tasklet.Tasklet, r tasklet.Rescheduler) error
	say := func(d tasklet.Directive) word {
		return func(s *tasklet.Runner, t tasklet.Tasklet, _ tasklet.Rescheduler) error { return s.Schedule(t, d) }
	}
	resume := func(d tasklet.Directive) word {
		return func(_ *tasklet.Runner, _ tasklet.Tasklet, r tasklet.Rescheduler) error { return r.Resume(d) }
	}
	for _, row := range []struct {
		name    string
		words   []word
		answers []tasklet.Directive
		want    string // . is Run's return, with T waiting
	}{
		{"a resumption before WAIT is consumed by it", []word{resume(sync_)}, []tasklet.Directive{wait}, "TBT"},
		{"it waits for a WAIT", []word{resume(sync_)}, []tasklet.Directive{sync_, sync_, wait, wait}, "TBTTT."},
		{"Schedule WAIT takes it back", []word{resume(sync_), say(wait)}, []tasklet.Directive{wait}, "TB."},
		{"Schedule SYNC, then WAIT, is SYNC", []word{say(sync_)}, []tasklet.Directive{wait, wait}, "TBT."},
		{"superseded by the answer", []word{say(sync_)}, []tasklet.Directive{sync_, wait}, "TBT."},
		{"Schedule DONE is final", []word{say(done)}, []tasklet.Directive{sync_}, "TB"},
		{"in which what was resumed is forgotten", []word{resume(sync_), say(done), say(sync_), resume(sync_)}, []tasklet.Directive{wait, wait}, "TBT."},
		{"ASYNC said, then WAIT, is ASYNC", []word{say(async)}, []tasklet.Directive{wait, wait}, "TBt."},
		{"ASYNC resumed, then WAIT, is ASYNC", []word{resume(async)}, []tasklet.Directive{wait, wait}, "TBt."},
		{"what is said last counts", []word{say(async), resume(sync_)}, []tasklet.Directive{wait, wait}, "TBT."},
		{"resumed or scheduled", []word{resume(sync_), say(async)}, []tasklet.Directive{wait, wait}, "TBt."},
		{"what was said is of this phase, what was resumed is not", []word{resume(async), say(sync_)},
			[]tasklet.Directive{sync_, wait, wait}, "TBTt."},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := &history{}
			exec := &later{}
			a := act.New(act.Config{Executor: exec})
			defer a.Close()
			s := tasklet.RunnerOf(a)
			answers, first := row.answers, true
			x := &phases{"T", func(t1 tasklet.Tasklet, s *tasklet.Runner) tasklet.Directive {
				if s.Act().Here() {
					h.note("T")
				} else {
					h.note("t")
				}
				if first {
					first = false
					r := s.Suspend(t1)
					for _, w := range row.words {
						require.NoError(t, w(s, t1, r))
					}
				}
				if len(answers) == 0 {
					return done
				}
				d := answers[0]
				answers = answers[1:]
				return d
			}}
			schedule(t, s, sync_, x, h.play("B"))
			steps(t, a, exec)
			if !a.Finished() {
				h.note(".")
			}
			require.Equal(t, row.want, h.take())
		})
	}
}

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
	r := tasklet.NewRunner()
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
	inTime(t, func() { require.NoError(t, r.Run()) })
	require.EqualValues(t, tries+1, x.phases.Load())
	require.Zero(t, x.twice.Load())
}

// Goroutines resume, schedule and run it under several runners.
func TestATaskletIsNeverInTwoPhases(t *testing.T) {
	const phases = 10_000
	first, second := tasklet.NewRunner(), tasklet.NewRunner()
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
	holds := []tasklet.Rescheduler{first.Suspend(tasklet.NewWait()), second.Suspend(tasklet.NewWait())}
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
	inTime(t, storm.Wait)
	for i, r := range []*tasklet.Runner{first, second} {
		require.NoError(t, r.Schedule(x, done))
		require.NoError(t, holds[i].Resume(done))
	}
	inTime(t, runs.Wait)
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
		other := tasklet.NewRunner()
		hold := other.Suspend(tasklet.NewWait())
		var ends sync.WaitGroup
		ends.Go(func() { _ = tasklet.With(tasklet.Inline(), x) })
		<-in
		require.ErrorIs(t, tasklet.With(other, x), tasklet.ErrInPhase)
		stranger := tasklet.NewRunner()
		require.ErrorIs(t, tasklet.With(stranger, x), tasklet.ErrInPhase)
		inTime(t, func() { require.NoError(t, stranger.Run(), "x is no member") })
		ends.Go(func() { _ = other.Run() })
		require.Eventually(t, func() bool { return other.Act() != nil }, patience, 1e6)
		schedule(t, other, d, x)
		schedule(t, other, sync_, tasklet.New(func(*tasklet.Runner) tasklet.Directive { h.note("B"); close(out); return done }))
		require.NoError(t, hold.Resume(done))
		inTime(t, ends.Wait)
		require.Equal(t, "TBT", h.take())
	}
}
