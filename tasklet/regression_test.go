package tasklet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/tasklet"
)

// called is a tasklet that waits and calls f when it is named.
type called struct{ f func() string }

func (c *called) String() string                         { return c.f() }
func (c *called) Task(*tasklet.Runner) tasklet.Directive { return wait }

// number is a tasklet that may not be equal to itself.
type number float64

func (number) Task(*tasklet.Runner) tasklet.Directive { return done }

// late schedules a tasklet when Run is about to return.
type late struct {
	r     *tasklet.Runner
	x     tasklet.Tasklet
	times int
}

func (d *late) Untie() bool {
	if d.times--; d.times < 0 {
		return true
	}
	_ = d.r.Schedule(d.x, sync_)
	return false
}

// tie makes a Run of d.r begin with a tasklet that ties d to it and then calls then.
func (d *late) tie(t *testing.T, then func()) {
	schedule(t, d.r, sync_, &phases{"T", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		r.Act().Internals().Tie(d)
		then()
		return done
	}})
}

// Run goes on with it, unless a shutdown says that there is no further turn.
func TestATaskletThatIsScheduledWhenRunIsAboutToReturn(t *testing.T) {
	for name, row := range map[string]struct {
		order shutdown.Order
		left  string
	}{
		"no shutdown":       {nil, ""},
		"without a bound":   {shutdown.Policy{Kind: shutdown.Unbounded}, ""},
		"with time left":    {shutdown.Policy{Time: time.Hour, Drop: true}, ""},
		"no further turn":   {shutdown.Policy{Kind: shutdown.Halt}, "X "},
		"dropped by a halt": {shutdown.Policy{Kind: shutdown.Halt, Drop: true}, "X "},
	} {
		t.Run(name, func(t *testing.T) {
			r, h := tasklet.NewRunner(act.Config{}), &history{}
			d := &late{r, h.play("X"), 1}
			d.tie(t, func() {
				if row.order != nil {
					r.Shutdown(row.order)
				}
			})
			var err error
			servertest.InTime(t, func() { err = r.Run() })
			if row.left == "" {
				require.NoError(t, err)
				require.Equal(t, "X", h.take())
				return
			}
			cut := requireCut(t, err)
			require.Equal(t, row.left, names(cut))
			require.Equal(t, row.order, cut.Order, "as it was given")
			require.Empty(t, h.take())
			require.NoError(t, r.Run())
			require.Equal(t, !cut.Dropped, h.take() == "X")
		})
	}
}

func TestABoundInTimeDoesNotBeginAfresh(t *testing.T) {
	for name, before := range map[string]bool{"given before Run": true, "given in Run": false} {
		t.Run(name, func(t *testing.T) {
			r, clock := virtual()
			order := terms(shutdown.Policy{Time: 50 * time.Millisecond})
			d := &late{r, tasklet.New(func(*tasklet.Runner) tasklet.Directive { clock.now += 5 * time.Millisecond; return done }), 20}
			schedule(t, r, wait, &known{r, order})
			d.tie(t, func() {
				if !before {
					r.Shutdown(order)
				}
			})
			if before {
				r.Shutdown(order)
			}
			var err error
			servertest.InTime(t, func() { err = r.Run() })
			require.Equal(t, order, requireCut(t, err).Order, "as it was given")
			require.Equal(t, 50*time.Millisecond, clock.now)
			require.Positive(t, d.times)
		})
	}
}

// known ends when it is told of one particular order.
type known struct {
	r     *tasklet.Runner
	order shutdown.Order
}

func (*known) Task(*tasklet.Runner) tasklet.Directive { return wait }

func (k *known) Stop(_ *act.Task, o shutdown.Order) {
	if o == k.order {
		_ = k.r.Schedule(k, done)
	}
}

// It is told between two phases, even if the next is ASYNC. An order whose Run has ended is not told any more.
func TestStopComesBeforeTheNextASYNCPhase(t *testing.T) {
	for name, row := range map[string]struct {
		policy shutdown.Policy
		want   string
	}{"in force": {shutdown.Policy{Kind: shutdown.Unbounded}, "(T)T"}, "spent": {shutdown.Policy{Kind: shutdown.Halt}, "T"}} {
		t.Run(name, func(t *testing.T) {
			exec, h := &later{}, &history{}
			a := act.New(act.Config{Executor: exec})
			defer a.Close()
			r := tasklet.RunnerOf(a)
			x := &between{told{h.play("T", async)}, func() {
				r.Shutdown(terms(row.policy))
				for n := 1; n > 0; {
					n, _ = a.Step(10)
				}
			}}
			schedule(t, r, async, x)
			_, _ = a.Step(10)
			require.True(t, exec.run())
			require.Equal(t, "T", h.take())
			_ = exec.run()
			require.Empty(t, h.take(), "it is not known yet whether it is to be told")
			steps(t, a, exec)
			require.Equal(t, row.want, h.take())
		})
	}
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

// The action that it awaits is closed.
func TestAStopThatPanicsFailsItsTasklet(t *testing.T) {
	r, logs := observed(act.Config{})
	h := &history{}
	schedule(t, r, sync_, &anxious{h: h}, &phases{"E", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		if h.count("a") == 0 {
			return sync_
		}
		r.Shutdown(terms(shutdown.Policy{Kind: shutdown.Unbounded}))
		return done
	}})
	servertest.InTime(t, func() { require.NoError(t, r.Run()) })
	require.Equal(t, []string{"anxious"}, failed(logs))
	require.Equal(t, 1, h.count("!"))
}

// anxious awaits, and panics in Stop.
type anxious struct{ h *history }

func (*anxious) String() string                             { return "anxious" }
func (x *anxious) Task(r *tasklet.Runner) tasklet.Directive { return r.Await(x, closing{x.h}) }
func (*anxious) Stop(*act.Task, shutdown.Order)             { panic("boom") }

// An order that came before the first turn did not reach the members of RunnerOf: no Cut named what it had dropped.
func TestAnOrderBeforeTheFirstTurnCutsMembers(t *testing.T) {
	s := act.New(act.Config{})
	r := tasklet.RunnerOf(s)
	schedule(t, r, sync_, &called{func() string { return "A" }})
	s.Shutdown(terms(shutdown.Policy{Kind: shutdown.Halt, Drop: true}))
	var cut *shutdown.Cut
	require.ErrorAs(t, s.Run(), &cut)
	require.Equal(t, []shutdown.Count{{Name: "A", N: 1}}, cut.Names)
	require.NoError(t, s.Close())
}
