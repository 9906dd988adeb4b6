package tasklet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

func requireCut(t testing.TB, err error) *shutdown.Cut {
	t.Helper()
	var cut *shutdown.Cut
	require.True(t, errors.As(err, &cut), "%v", err)
	return cut
}

func names(cut *shutdown.Cut) (all string) {
	for _, n := range cut.Names {
		all += n.String() + " "
	}
	return all
}

// forever answers Sync until it is told of an order.
type forever struct {
	h       *history
	name    string
	heed    bool
	stopped bool
}

func (f *forever) String() string { return f.name }

func (f *forever) Task(*tasklet.Runner) tasklet.Directive {
	f.h.note(f.name)
	if f.stopped && f.heed {
		return done
	}
	return sync_
}

func (f *forever) Stop(_ *tasklet.Runner, o shutdown.Order) {
	f.h.note("(" + f.name + ")")
	f.stopped = true
}

func TestAnOrderCallsStop(t *testing.T) {
	s, h := tasklet.NewRunner(), &history{}
	order := terms(shutdown.Unbounded)
	w := &waiter{h: h}
	w.r = s.Suspend(w)
	schedule(t, s, sync_, &forever{h: h, name: "A", heed: true}, &phases{"S", func(_ tasklet.Tasklet, s *tasklet.Runner) tasklet.Directive {
		h.note("S")
		s.Shutdown(order)
		return done
	}}, h.play("B", sync_), &phases{"O", func(_ tasklet.Tasklet, s *tasklet.Runner) tasklet.Directive {
		if s.Order() != order {
			return sync_
		}
		h.note("o")
		return done
	}})
	inTime(t, func() { require.NoError(t, s.Run()) })
	got := h.take()
	require.Equal(t, "AS", got[:2])
	for _, once := range []string{"(A)", "(W)", "o", "w"} {
		require.Contains(t, got, once)
	}
	require.Nil(t, s.Order(), "it is spent")
}

// waiter waits until it is told of an order, and then resumes itself.
type waiter struct {
	h *history
	r tasklet.Rescheduler
}

func (*waiter) String() string { return "W" }

func (w *waiter) Task(r *tasklet.Runner) tasklet.Directive {
	w.h.note("w")
	return done
}

func (w *waiter) Stop(r *tasklet.Runner, _ shutdown.Order) {
	w.h.note("(W)")
	_ = r.Schedule(w, sync_)
}

// An order does not interrupt an ASYNC phase: the tasklet is told after it and before the next.
func TestStopComesAfterAnASYNCPhase(t *testing.T) {
	for name, answer := range map[string]tasklet.Directive{"SYNC": sync_, "ASYNC": async, "WAIT": wait} {
		t.Run(name, func(t *testing.T) {
			r, h := tasklet.NewRunner(), &history{}
			x := &patient{h: h, s: r, answer: answer}
			schedule(t, r, sync_, x)
			inTime(t, func() { require.NoError(t, r.Run()) })
			require.Equal(t, "1[2](T)3", h.take())
		})
	}
}

type patient struct {
	h      *history
	s      *tasklet.Runner
	phase  int
	answer tasklet.Directive
}

func (p *patient) Task(r *tasklet.Runner) tasklet.Directive {
	switch p.phase++; p.phase {
	case 1:
		p.h.note("1")
		return async
	case 2:
		p.h.note("[2")
		p.s.Shutdown(terms(shutdown.Unbounded))
		for r.Order() == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond)
		p.h.note("]")
		return p.answer
	}
	p.h.note("3")
	return done
}

func (p *patient) Stop(r *tasklet.Runner, o shutdown.Order) {
	p.h.note("(T)")
	if p.answer == wait {
		_ = r.Schedule(p, sync_)
	}
}

func TestTheTermsOfAnOrder(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy shutdown.Policy
		want   string // of the first Run, told apart
		left   string
		again  string // of a second one, which is halted after some phases
	}{
		{"turns are SYNC phases", shutdown.Policy{Turns: 2}, "(A)(B)ABAB", "A B ", "AB"},
		{"one turn", shutdown.Policy{Turns: 1}, "(A)(B)AB", "A B ", "AB"},
		{"turns, then dropped", shutdown.Policy{Turns: 2, Drop: true}, "(A)(B)ABAB", "A B ", ""},
		{"halt keeps", shutdown.Halt, "(A)(B)", "A B ", "AB"},
		{"halt and drop", shutdown.Policy{Kind: shutdown.Halting, Drop: true}, "(A)(B)", "A B ", ""},
		{"suspend calls no Stop", shutdown.Suspend, "", "A B ", "AB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, h := tasklet.NewRunner(), &history{}
			schedule(t, r, sync_, &forever{h: h, name: "A"}, &forever{h: h, name: "B"})
			r.Shutdown(terms(row.policy))
			cut := requireCut(t, r.Run())
			require.Equal(t, row.want, h.take())
			require.Equal(t, row.left, names(cut))
			require.Equal(t, 2, cut.Tasks)
			require.Equal(t, row.policy.Drop, cut.Dropped)

			n := 0
			schedule(t, r, sync_, tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
				r.Shutdown(terms(shutdown.Suspend))
				n++
				return sync_
			}))
			requireCut(t, r.Run())
			require.Equal(t, 1, n)
			require.Equal(t, row.again, h.take(), "in their order")
		})
	}
}

func TestABoundInTimeEndsWaitingTasklets(t *testing.T) {
	r, h := tasklet.NewRunner(), &history{}
	schedule(t, r, wait, told{h.play("W")})
	schedule(t, r, sync_, tasklet.NewWait())
	r.Shutdown(terms(shutdown.Policy{Time: 10 * time.Millisecond, Turns: 1}))
	var cut *shutdown.Cut
	inTime(t, func() { cut = requireCut(t, r.Run()) })
	require.Equal(t, sorted("W tasklet of WAIT "), sorted(names(cut)))
	require.Equal(t, "(W)", h.take())
	schedule(t, r, sync_, h.play("B"))
	r.Shutdown(terms(shutdown.Halt))
	require.Equal(t, sorted("B W tasklet of WAIT "), sorted(names(requireCut(t, r.Run()))), "they are kept")
}

// After a halt the next Run goes on where it was: members are queued and wait as before, and what an ASYNC phase has
// answered meanwhile counts.
func TestAHaltedRunIsRunAgain(t *testing.T) {
	for name, answer := range map[string]tasklet.Directive{"SYNC": sync_, "ASYNC": async, "WAIT": wait, "DONE": done} {
		t.Run(name, func(t *testing.T) {
			r, h := tasklet.NewRunner(), &history{}
			in, out := make(chan bool), make(chan bool)
			phase := 0
			x := &phases{"X", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				switch phase++; phase {
				case 1:
					return async
				case 2:
					in <- true
					<-out
					return answer
				}
				h.note("x")
				return done
			}}
			right := r.Suspend(h.play("W"))
			schedule(t, r, sync_, x)
			go func() { <-in; r.Shutdown(terms(shutdown.Halt)) }()
			var cut *shutdown.Cut
			inTime(t, func() { cut = requireCut(t, r.Run()) })
			require.Equal(t, 2, cut.Tasks)
			require.Equal(t, 1, cut.Offloads)
			schedule(t, r, sync_, h.play("Q"))
			close(out)
			require.NoError(t, right.Resume(sync_))
			if answer == wait {
				require.Eventually(t, func() bool { return tasklet.With(r, x) == nil }, patience, time.Millisecond)
			}
			inTime(t, func() { require.NoError(t, r.Run()) })
			got := h.take()
			require.Equal(t, "QW", strings.ReplaceAll(got, "x", ""))
			require.Equal(t, answer != done, len(got) == 3, got)
		})
	}
}

func TestADroppedTaskletIsForgotten(t *testing.T) {
	r, h := tasklet.NewRunner(), &history{}
	x := h.play("X")
	right := r.Suspend(x)
	r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halting, Drop: true}))
	requireCut(t, r.Run())
	require.NoError(t, right.Resume(sync_))
	require.NoError(t, r.Run())
	require.Empty(t, h.take())
	schedule(t, r, sync_, x)
	require.NoError(t, r.Run())
	require.Equal(t, "X", h.take())
}

func TestAStopThatPanicsFailsItsTasklet(t *testing.T) {
	r, logs := observed(act.Config{})
	h := &history{}
	schedule(t, r, sync_, &touchy{}, h.play("B"))
	r.Shutdown(terms(shutdown.Unbounded))
	inTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, []string{"touchy"}, failed(logs))
	require.Equal(t, "B", h.take())
}

type touchy struct{ _ int }

func (*touchy) String() string                         { return "touchy" }
func (*touchy) Task(*tasklet.Runner) tasklet.Directive { return sync_ }
func (*touchy) Stop(*tasklet.Runner, shutdown.Order)   { panic("boom") }

// Every answer with every order, while phases of all kinds are active: Run returns, and a second Run ends what the
// first has kept.
func TestOrdersAtAnyMoment(t *testing.T) {
	for i := range 300 {
		r, _ := observed(act.Config{})
		h := &history{}
		for j := range 10 {
			var answers []tasklet.Directive
			for k := range 20 {
				answers = append(answers, []tasklet.Directive{sync_, async}[(i+j*k)%2])
			}
			schedule(t, r, sync_, told{h.play("x", answers...)})
		}
		policy := []shutdown.Policy{shutdown.Unbounded, {Turns: 3}, {Turns: 3, Drop: true}, shutdown.Halt,
			{Kind: shutdown.Halting, Drop: true}, shutdown.Suspend, {Time: 1}}[i%7]
		go func() {
			time.Sleep(time.Duration(i%50) * 10 * time.Microsecond)
			r.Shutdown(terms(policy))
		}()
		inTime(t, func() {
			_ = r.Run()
			time.Sleep(time.Millisecond) // the order may have come after it, then it is for this one
			_ = r.Run()
			require.NoError(t, r.Run())
		})
		if !policy.Drop {
			require.Equal(t, 210, h.count("x")-h.count("(x)"), "%v", policy)
		}
	}
}

// A tasklet that was just scheduled, and has no task yet, is counted and dropped like any other.
func TestACutCountsTaskletsWithoutATask(t *testing.T) {
	for _, drop := range []bool{false, true} {
		r, h := tasklet.NewRunner(), &history{}
		schedule(t, r, sync_, &phases{"T", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
			r.Act().Spawn(act.Func(func(*act.Task) act.Directive {
				schedule(t, r, sync_, h.play("X"))
				r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halting, Drop: drop}))
				return act.Done
			}))
			return done
		}})
		cut := requireCut(t, r.Run())
		require.Equal(t, "X ", names(cut))
		require.Equal(t, 1, cut.Tasks)
		require.NoError(t, r.Run())
		require.Equal(t, !drop, h.take() == "X")
	}
}

// Stop is not called beside a phase under another runner.
func TestStopComesAfterAPhaseUnderAnotherRunner(t *testing.T) {
	a, h := act.New(act.Config{}), &history{}
	defer a.Close()
	r := tasklet.RunnerOf(a)
	in, out, over := make(chan bool), make(chan bool), make(chan bool)
	w := &lodger{waiter{h: h}, func() { in <- true; <-out }}
	_ = r.Suspend(w)
	steps(t, a, &later{})
	go func() { defer close(over); _ = tasklet.With(tasklet.Inline(), w) }()
	<-in
	r.Shutdown(terms(shutdown.Unbounded))
	steps(t, a, &later{})
	require.Empty(t, h.take())
	close(out)
	<-over
	steps(t, a, &later{})
	require.Equal(t, "w(W)", h.take())
}

type lodger struct {
	waiter
	f func()
}

func (l *lodger) Task(r *tasklet.Runner) tasklet.Directive {
	l.f()
	return l.waiter.Task(r)
}

func (l *lodger) Stop(*tasklet.Runner, shutdown.Order) { l.h.note("(W)") }
