package act_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// offloads is a task that has f called off its thread once and then ends.
func offloads(f func()) act.Func {
	gone := false
	return func(t *act.Task) act.Directive {
		if gone {
			return act.Done
		}
		gone = true
		return t.Offload(f)
	}
}

// inline is an Executor that runs everything at once, where it is called.
type inline struct{}

func (inline) Execute(f func()) { f() }

// later is an Executor that runs what it was given when it is told to.
type later struct {
	mu    sync.Mutex
	given []func()
}

func (l *later) Execute(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = append(l.given, f)
}

// run runs the oldest of what was given, on a goroutine of its own.
func (l *later) run() {
	l.mu.Lock()
	f := l.given[0]
	l.given = l.given[1:]
	l.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	<-ended
}

func TestAfterAnOffloadTheNextTurnIsOnItsThreadAgain(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var home, away, back uint64
	result := 0
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if home == 0 {
			home = thread.ID()
			return t.Offload(func() {
				away = thread.ID()
				result = 42 // the action's own, without a lock: the race detector watches
			})
		}
		back = thread.ID()
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, home, back)
	require.NotEqual(t, home, away)
	require.Equal(t, 42, result)
}

func TestStopOfAnOffloadedTaskIsCalledWhenItsFunctionHasReturned(t *testing.T) {
	exec := &later{}
	s, _ := newScheduler(t, act.Config{Executor: exec})
	var h history
	turns := 0
	s.Spawn(told{func(t *act.Task) act.Directive {
		if turns++; turns == 1 {
			return t.Offload(func() { h.WriteString("f") })
		}
		require.NotNil(panicking{}, t.Order())
		return h.note("A", act.Done)
	}, func(*act.Task, shutdown.Order) { h.WriteString("!") }})
	_, err := s.Step(1)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Turns: 5})
	n, err := s.Step(5)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, h.String(), "the action belongs to the function")
	exec.run()
	require.NoError(t, s.Run())
	require.Equal(t, "f!A", h.String())
}

// panicking is a TestingT for turns: a requirement that is not met panics, which fails the task.
type panicking struct{}

func (panicking) Errorf(string, ...any) {}
func (panicking) FailNow()              { panic("a requirement is not met") }

func TestADropAbandonsAnOffloadAndItsThreadClosesTheActionWhenItReturns(t *testing.T) {
	exec := &later{}
	var dropped []error
	s, _ := newScheduler(t, act.Config{Executor: exec, Trace: &act.Trace{
		Ended: func(_ *act.Task, err error) { dropped = append(dropped, err) }}})
	var closedOn uint64
	var timer act.Timer
	closed, ran := 0, false
	s.Spawn(struct {
		act.Func
		*closer
	}{func(t *act.Task) act.Directive {
		t.WakeAfter(&timer, time.Hour)
		return t.Offload(func() { ran = true })
	}, &closer{func() error {
		require.True(panicking{}, ran, "not while the function has it")
		closed++
		closedOn = thread.ID()
		return nil
	}}})
	_, err := s.Step(1)
	require.NoError(t, err)
	s.Shutdown(haltAndDrop)
	cut := requireCut(t, s.Run())
	require.Equal(t, []int{1, 1}, []int{cut.Tasks, cut.Offloads})
	require.Equal(t, []error{act.ErrDropped}, dropped)
	require.Zero(t, closed)
	require.False(t, timer.Armed())
	require.NoError(t, s.Run(), "an abandoned function does not keep Run from returning")

	exec.run()
	require.True(t, ran, "it went on")
	require.Zero(t, closed)
	var home uint64
	s.Spawn(act.Func(func(*act.Task) act.Directive { home = thread.ID(); return act.Done }))
	s.Post(func(*act.Scheduler) {})
	require.NoError(t, s.Run())
	require.Equal(t, 1, closed)
	require.Equal(t, home, closedOn)
	require.Len(t, dropped, 2, "dropped once, and the newcomer's end")
}

// What was broken: the goroutine of a function gave the Task's turn up while Close looked at it.
func TestAfterCloseAnAbandonedActionIsClosedByTheGoroutineOfItsFunction(t *testing.T) {
	var closed atomic.Int32
	var wakes []func()
	release := make(chan struct{})
	s := act.New(act.Config{})
	const n = 50
	for range n {
		var timer act.Timer
		s.Spawn(struct {
			act.Func
			*closer
		}{func(t *act.Task) act.Directive {
			t.Own(&closer{func() error { closed.Add(1); return nil }})
			t.WakeAfter(&timer, time.Hour) // what is armed must be disarmed by the scheduler's thread
			wakes = append(wakes, t.Waker().Remote())
			return t.Offload(func() { <-release })
		}, &closer{func() error { closed.Add(1); return nil }}})
	}
	_, err := s.Step(n)
	require.NoError(t, err)
	for _, w := range wakes {
		w()
	}
	go close(release) // some return before Close, some meanwhile, some later
	require.Equal(t, n, requireCut(t, s.Close()).Tasks)
	require.Eventually(t, func() bool { return closed.Load() == 2*n }, servertest.Timeout, time.Millisecond)
}

func TestACallEndsAsItsFunctionDoes(t *testing.T) {
	refusal := errors.New("no such host")
	for name, c := range map[string]struct {
		f    func() (int, error)
		says string
	}{
		"a value":  {func() (int, error) { return 42, nil }, ""},
		"an error": {func() (int, error) { return 0, refusal }, "no such host"},
		"a panic":  {func() (int, error) { panic(refusal) }, "panic: no such host"},
		"a goexit": {func() (int, error) { runtime.Goexit(); return 0, nil }, "runtime.Goexit"},
	} {
		for executor, e := range map[string]act.Executor{"pool": nil, "inline": inline{}} {
			if name == "a goexit" && e != nil {
				continue // an inline Executor would end the scheduler's goroutine
			}
			t.Run(name+" "+executor, func(t *testing.T) {
				s, _ := newScheduler(t, act.Config{Executor: e})
				call := &act.Call[int]{F: c.f}
				var verdicts []act.Directive
				var err error
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					d := call.Act(t)
					if !d.Finished() {
						require.Equal(panicking{}, act.Wait, d)
						return d
					}
					err = t.Err()
					verdicts = append(verdicts, d, call.Act(t), call.Act(t))
					return act.Done
				}))
				require.NoError(t, s.Run())
				if c.says == "" {
					require.NoError(t, err)
					require.Equal(t, 42, call.Value)
					require.Equal(t, []act.Directive{act.Done, act.Done, act.Done}, verdicts, "answered again")
					return
				}
				require.EqualError(t, err, c.says)
				require.Equal(t, []act.Directive{act.Failed, act.Failed, act.Failed}, verdicts, "answered again")
			})
		}
	}
}

// sleep is a leaf that is done after a while.
func sleep(d time.Duration) act.Func {
	var timer act.Timer
	begun := false
	return func(t *act.Task) act.Directive {
		if !begun {
			begun = true
			t.WakeAfter(&timer, d)
		}
		if timer.Armed() {
			return act.Wait
		}
		return act.Done
	}
}

// calling is the only task of s: a, and what came of it.
func calling(t *testing.T, s *act.Scheduler, a act.Action) *error {
	t.Helper()
	err := new(error)
	child := act.Child{Action: a}
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		d := child.Act(t)
		if d == act.Failed {
			*err = t.Err()
		}
		return d
	}))
	return err
}

func TestTheEndOfOn(t *testing.T) {
	why := errors.New("why")
	for name, c := range map[string]struct {
		do     func(t *act.Task) act.Directive
		before func(there *act.Scheduler)
		closed bool // with the call in its inbox
		err    string
	}{
		"done":          {do: func(*act.Task) act.Directive { return act.Done }},
		"fails":         {do: func(t *act.Task) act.Directive { return t.Fail(why) }, err: "why"},
		"panics":        {do: func(*act.Task) act.Directive { panic("oh") }, err: "panic: oh"},
		"dropped":       {do: func(*act.Task) act.Directive { return act.Wait }, err: act.ErrDropped.Error()},
		"abandoned":     {do: func(t *act.Task) act.Directive { return t.Offload(func() {}) }, err: act.ErrDropped.Error()},
		"closed then":   {do: func(*act.Task) act.Directive { panic("begun") }, closed: true, err: act.ErrClosed.Error()},
		"closed before": {before: func(s *act.Scheduler) { _ = s.Close() }, err: act.ErrClosed.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			here, _ := newScheduler(t, act.Config{})
			there, logs := newScheduler(t, act.Config{Executor: never{}})
			if c.before != nil {
				c.before(there)
			}
			err := calling(t, here, act.On(there, act.Func(c.do)))
			_, stepped := here.Step(1)
			require.NoError(t, stepped)
			if c.before == nil && !c.closed {
				_, _ = there.Step(100)
			}
			_ = there.Close()
			require.NoError(t, here.Run())
			if c.err == "" {
				require.NoError(t, *err)
			} else {
				require.EqualError(t, *err, c.err)
			}
			require.Zero(t, logs.FilterMessage("a task failed").Len(), "only the caller is told")
		})
	}
}

func TestOnThatWasClosedIsNotBegun(t *testing.T) {
	here, _ := newScheduler(t, act.Config{})
	there, _ := newScheduler(t, act.Config{})
	begun := false
	here.Spawn(act.First(
		act.On(there, act.Func(func(*act.Task) act.Directive { begun = true; return act.Done })),
		act.Func(func(*act.Task) act.Directive { return act.Done })))
	require.NoError(t, here.Run())
	require.NoError(t, there.Run())
	require.False(t, begun)
}

// full returns a scheduler whose executor has no place left until release is closed.
func full(t *testing.T) (s *act.Scheduler, release chan struct{}) {
	s, _ = newScheduler(t, act.Config{Offloads: 2})
	release = make(chan struct{})
	for range 2 {
		s.Internals().Executor().Execute(func() { <-release })
	}
	return s, release
}

// reserver is an Executor of an application's own that sets goroutines aside.
type reserver struct {
	later
	reserved []int
}

func (r *reserver) Reserve(n int) act.Executor {
	r.reserved = append(r.reserved, n)
	return inline{}
}

func TestWhatAnExecutorOfOnesOwnReserves(t *testing.T) {
	plain, own := &later{}, &reserver{}
	s, _ := newScheduler(t, act.Config{Executor: plain})
	require.Same(t, plain, s.Internals().Reserve(1), "stands in")
	s, _ = newScheduler(t, act.Config{Executor: own})
	require.Equal(t, inline{}, s.Internals().Reserve(3))
	require.Equal(t, []int{3}, own.reserved)
	require.PanicsWithValue(t, "act: Reserve of no goroutines", func() { s.Internals().Reserve(0) })
}

func TestACallIsMadeByTheExecutorItNames(t *testing.T) {
	s, release := full(t)
	on := s.Internals().Reserve(1)
	var h history
	call := func(letter string, on act.Executor) act.Func {
		c := &act.Call[string]{F: func() (string, error) { return letter, nil }, On: on}
		return func(t *act.Task) act.Directive {
			d := c.Act(t)
			if d == act.Done {
				h.WriteString(c.Value)
			}
			return d
		}
	}
	s.Spawn(call("A", nil)) // waits for a place
	s.Spawn(call("B", on))
	s.Spawn(call("C", on))
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		if len(h.String()) < 2 {
			return act.Yield
		}
		close(release)
		return act.Done
	}))
	servertest.InTime(t, func() { require.NoError(t, s.Run()) })
	require.Equal(t, "BCA", h.String())
}

func TestAnExecutorMayRunEverythingAtOnce(t *testing.T) {
	s, _ := newScheduler(t, act.Config{Executor: inline{}})
	var h history
	s.Spawn(act.Seq(offloads(func() { h.WriteString("f") }), h.script("A", 1, act.Yield)))
	s.Spawn(h.script("B", 2, act.Yield))
	require.NoError(t, s.Run())
	require.Equal(t, "fBBA", h.String(), "the letter of its end is opened in the next pass")
}
