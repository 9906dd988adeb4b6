package tasklet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

// called is a tasklet that waits and calls f when it is named.
type called struct{ f func() string }

func (c *called) String() string                         { return c.f() }
func (c *called) Task(*tasklet.Runner) tasklet.Directive { return wait }

// A tasklet may be released while it is named after Run has ended. (The race detector checks this.)
func TestATaskletForgottenAfterRunHasAName(t *testing.T) {
	for name, waits := range map[string]bool{"before": true, "meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			r, _ := observed(trace(h))
			b := h.play("B")
			over, begun := make(chan bool), false
			a := &called{func() string {
				switch {
				case begun:
					time.Sleep(10 * time.Millisecond)
				case r.Act() == nil: // in the Close that follows Run
					begun = true
					go func() { defer close(over); _ = r.Schedule(b, done) }()
					if waits {
						<-over
					}
				}
				return "A"
			}}
			schedule(t, r, wait, a, b)
			r.Shutdown(terms(shutdown.Halt))
			require.Equal(t, "A B ", names(requireCut(t, r.Run())))
			<-over
			got := h.take()
			require.NotContains(t, got, "nil")
			if waits {
				require.Contains(t, got, "[*tasklet_test.script: ")
			}
		})
	}
}

// A tasklet that is not queued when an order comes spends a turn on it.
func TestAnOrderTakesATurn(t *testing.T) {
	for turns, want := range map[int]string{1: "t", 2: "tT"} {
		h, r := &history{}, tasklet.NewRunner()
		schedule(t, r, sync_, first("T", async, func(_ tasklet.Tasklet, view *tasklet.Runner) tasklet.Directive {
			if h.count("t") > 0 {
				h.note("T")
				return done
			}
			h.note("t")
			r.Shutdown(terms(shutdown.Policy{Turns: turns, Time: patience}))
			for view.Order() == nil {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
			return sync_
		}))
		inTime(t, func() { require.Equal(t, turns == 1, r.Run() != nil) })
		require.Equal(t, want, h.take(), "%d turns", turns)
	}
}

// stale is a script whose first phase ends after the Run of its order.
type stale struct {
	*script
	in, out chan bool
}

func (p *stale) Task(r *tasklet.Runner) tasklet.Directive {
	if p.h.count(p.name) == 0 {
		p.in <- true
		<-p.out
	}
	return p.script.Task(r)
}

func (p *stale) Stop(*tasklet.Runner, shutdown.Order) { p.h.note("(T)") }

func TestStopIsNotCalledForASpentOrder(t *testing.T) {
	for name, answer := range map[string]tasklet.Directive{"SYNC": sync_, "ASYNC": async} {
		t.Run(name, func(t *testing.T) {
			a, h := act.New(act.Config{}), &history{}
			defer a.Close()
			r := tasklet.RunnerOf(a)
			x := &stale{h.play("T", answer), make(chan bool), make(chan bool)}
			schedule(t, r, async, x)
			_, err := a.Step(10) // it has a task
			require.NoError(t, err)
			go func() { <-x.in; r.Shutdown(terms(shutdown.Halt)) }()
			inTime(t, func() { requireCut(t, a.Run()) })
			close(x.out)
			inTime(t, func() { require.NoError(t, a.Run()) })
			require.Equal(t, "TT", h.take())
		})
	}
}

// An old order does not keep an ASYNC phase from beginning.
func TestASpentOrderDelaysNoASYNCPhase(t *testing.T) {
	exec, h := &later{}, &history{}
	a := act.New(act.Config{Executor: exec})
	defer a.Close()
	r := tasklet.RunnerOf(a)
	x := &between{told{h.play("T", async)}, func() {
		r.Shutdown(terms(shutdown.Halt))
		_, err := a.Step(10)
		requireCut(t, err)
	}}
	schedule(t, r, async, x)
	_, _ = a.Step(10)
	require.True(t, exec.run())
	require.True(t, exec.run(), "too early: nobody has noticed yet that the order is spent")
	require.Equal(t, "T", h.take())
	steps(t, a, exec)
	require.Equal(t, "T", h.take())
}

func TestOnReturnsTheSameRunner(t *testing.T) {
	a, h := act.New(act.Config{}), &history{}
	defer a.Close()
	x := h.play("X")
	schedule(t, tasklet.RunnerOf(a), wait, x)
	a.Spawn(act.Func(func(t *act.Task) act.Directive {
		_ = tasklet.RunnerOf(t.Scheduler()).Schedule(x, done)
		return act.Done
	}))
	inTime(t, func() { require.NoError(t, a.Run()) })
	require.Empty(t, h.take())
}

// number is a tasklet that may not be equal to itself.
type number float64

func (number) Task(*tasklet.Runner) tasklet.Directive { return done }

// However often it is scheduled, the executor gets it once, and an entry that waits for it is remembered once.
func TestRepeatedSchedulesTakeNoMemory(t *testing.T) {
	exec, h := &later{}, &history{}
	a := act.New(act.Config{Executor: exec})
	defer a.Close()
	r := tasklet.RunnerOf(a)
	x := h.play("X", async)
	for range 100 {
		schedule(t, r, async, x)
		schedule(t, r, wait, x)
	}
	require.Len(t, exec.fs, 1)
	schedule(t, r, async, x)
	steps(t, a, exec)
	require.Equal(t, "XX", h.take(), "and again after that")

	y := &phases{"Y", func(y tasklet.Tasklet, _ *tasklet.Runner) tasklet.Directive {
		if h.note("Y"); h.count("Y") == 2 {
			return wait // under s: the same life
		}
		for range 100 {
			schedule(t, r, sync_, y)
			_, _ = a.Step(100)
		}
		require.Equal(t, 1, tasklet.Retries(y))
		return done
	}}
	for range 2 {
		schedule(t, tasklet.Inline(), sync_, y)
		steps(t, a, exec)
		require.Equal(t, "YY", h.take(), "and again after that")
	}
}

// ending schedules another x each time that Run is about to return.
type ending struct {
	s    *tasklet.Runner
	left int
}

func (d *ending) Untie() bool {
	if d.left--; d.left >= 0 {
		_ = d.s.Schedule(tasklet.New(func(*tasklet.Runner) tasklet.Directive {
			time.Sleep(5 * time.Millisecond)
			return done
		}), sync_)
	}
	return d.left < 0
}

func TestABoundInTimeDoesNotBeginAfresh(t *testing.T) {
	for name, before := range map[string]bool{"given before Run": true, "given in Run": false} {
		t.Run(name, func(t *testing.T) {
			r, order := tasklet.NewRunner(), terms(shutdown.Policy{Time: 50 * time.Millisecond})
			d := &ending{r, 1000}
			x := &known{order: order}
			schedule(t, r, wait, x)
			schedule(t, r, sync_, &phases{"T", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				hook.Tie(r.Act(), d)
				if !before {
					r.Shutdown(order)
				}
				return done
			}})
			if before {
				r.Shutdown(order)
			}
			var err error
			inTime(t, func() { err = r.Run() })
			require.Equal(t, order, requireCut(t, err).Order, "as it was given")
			require.Greater(t, d.left, 900)
		})
	}
}

// known ends when it is told of one particular order.
type known struct{ order shutdown.Order }

func (*known) Task(*tasklet.Runner) tasklet.Directive { return wait }

func (k *known) Stop(r *tasklet.Runner, o shutdown.Order) {
	if o == k.order && r.Order() == k.order {
		_ = r.Schedule(k, done)
	}
}

// It is told between two phases, even if the next is ASYNC.
func TestStopComesBeforeTheNextASYNCPhase(t *testing.T) {
	exec, h := &later{}, &history{}
	a := act.New(act.Config{Executor: exec})
	defer a.Close()
	r := tasklet.RunnerOf(a)
	x := &between{told{h.play("T", async)}, func() {
		r.Shutdown(terms(shutdown.Unbounded))
		for n := 1; n > 0; {
			n, _ = a.Step(10)
		}
	}}
	schedule(t, r, async, x)
	_, _ = a.Step(10)
	require.True(t, exec.run())
	require.Equal(t, "T", h.take())
	_ = exec.run()
	require.Empty(t, h.take(), "has not been told yet")
	steps(t, a, exec)
	require.Equal(t, "(T)T", h.take())
}

// between calls f in its first phase.
type between struct {
	told
	f func()
}

func (b *between) Task(r *tasklet.Runner) tasklet.Directive {
	d := b.told.Task(r)
	if b.f != nil {
		b.f()
		b.f = nil
	}
	return d
}

// An awaited action is closed however the tasklet ends.
func TestAnAwaitedActionIsAlwaysClosed(t *testing.T) {
	for name, end := range map[string]func(r *tasklet.Runner, x tasklet.Tasklet){
		"suspended and dropped": func(r *tasklet.Runner, _ tasklet.Tasklet) {
			r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Suspending, Drop: true}))
		},
		"a panic in Stop": func(r *tasklet.Runner, _ tasklet.Tasklet) { r.Shutdown(terms(shutdown.Unbounded)) },
		"forgotten":       func(r *tasklet.Runner, x tasklet.Tasklet) { _ = r.Schedule(x, done) },
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := observed(act.Config{})
			h := &history{}
			x := &anxious{h: h}
			schedule(t, r, sync_, x)
			go func() {
				for h.count("a") == 0 {
					time.Sleep(time.Millisecond)
				}
				end(r, x)
			}()
			inTime(t, func() { _ = r.Run() })
			require.Equal(t, 1, h.count("!"))
		})
	}
}

// anxious awaits, and panics in Stop.
type anxious struct{ h *history }

func (x *anxious) Task(r *tasklet.Runner) tasklet.Directive { return r.Await(x, closing{x.h}) }
func (*anxious) Stop(*tasklet.Runner, shutdown.Order)       { panic("boom") }

// An order that came before the first turn did not reach the members of RunnerOf: no Cut named what it had dropped.
func TestAnOrderBeforeTheFirstTurnCutsMembers(t *testing.T) {
	s := act.New(act.Config{})
	r := tasklet.RunnerOf(s)
	schedule(t, r, sync_, &called{func() string { return "A" }})
	s.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halting, Drop: true}))
	var cut *shutdown.Cut
	require.ErrorAs(t, s.Run(), &cut)
	require.Equal(t, []shutdown.Count{{Name: "A", N: 1}}, cut.Names)
	require.NoError(t, s.Close())
}
