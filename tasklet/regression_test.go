package tasklet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
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
	r *tasklet.Runner
	x tasklet.Tasklet
}

func (d *late) Untie() bool {
	if d.x != nil {
		_ = d.r.Schedule(d.x, sync_)
		d.x = nil
	}
	return true
}

// Without a shutdown Run goes on with it. After one it is left for the next Run, or dropped.
func TestATaskletThatIsScheduledWhenRunIsAboutToReturn(t *testing.T) {
	for name, row := range map[string]struct {
		order shutdown.Order
		left  string
		ran   string // by the next Run
	}{
		"no shutdown": {nil, "", ""},
		"a shutdown":  {shutdown.Policy{Kind: shutdown.Unbounded}, "X ", "X"},
		"a drop":      {shutdown.Policy{Time: time.Hour, Drop: true}, "X ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, h := tasklet.NewRunner(act.Config{}), &history{}
			d := &late{r, h.play("X")}
			schedule(t, r, sync_, &phases{"T", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				r.Act().Internals().Tie(d)
				return done
			}})
			if row.order != nil {
				schedule(t, r, wait, &known{r, row.order})
				r.Shutdown(row.order)
			}
			var err error
			inTime(t, func() { err = r.Run() })
			if row.left == "" {
				require.NoError(t, err)
				require.Equal(t, "X", h.take())
				return
			}
			cut := requireCut(t, err)
			require.Equal(t, row.left, names(cut))
			require.Equal(t, row.order, cut.Order)
			require.NoError(t, r.Run())
			require.Equal(t, row.ran, h.take())
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

// An awaited action is closed however the tasklet ends.
func TestAnAwaitedActionIsAlwaysClosed(t *testing.T) {
	for name, policy := range map[string]shutdown.Policy{
		"suspended and dropped": {Kind: shutdown.Suspend, Drop: true},
		"a panic in Stop":       shutdown.Policy{Kind: shutdown.Unbounded},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := observed(act.Config{})
			h := &history{}
			schedule(t, r, sync_, &anxious{h: h}, &phases{"E", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
				if h.count("a") == 0 {
					return sync_
				}
				r.Shutdown(terms(policy))
				return done
			}})
			inTime(t, func() { _ = r.Run() })
			require.Equal(t, 1, h.count("!"))
		})
	}
}

// anxious awaits, and panics in Stop.
type anxious struct{ h *history }

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
