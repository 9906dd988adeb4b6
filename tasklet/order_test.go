package tasklet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/hook"
	"github.com/daimon-go/daimon/tasklet"
)

func TestTheLastDirectiveWinsAndATaskletHasOnePlace(t *testing.T) {
	type word struct {
		who string
		d   tasklet.Directive
	}
	for _, row := range []struct {
		name  string
		words []word
		want  string
	}{
		{"in the order of scheduling", []word{{"A", sync_}, {"B", sync_}, {"C", sync_}}, "ABC"},
		{"SYNC again moves to the tail", []word{{"A", sync_}, {"B", sync_}, {"A", sync_}}, "BA"},
		{"of one by itself it changes nothing", []word{{"A", sync_}, {"A", sync_}}, "A"},
		{"from the middle", []word{{"A", sync_}, {"B", sync_}, {"C", sync_}, {"B", sync_}}, "ACB"},
		{"the tail stays", []word{{"A", sync_}, {"B", sync_}, {"B", sync_}}, "AB"},
		{"DONE takes out", []word{{"A", sync_}, {"B", sync_}, {"A", done}}, "B"},
		{"DONE of all", []word{{"A", sync_}, {"A", done}}, ""},
		{"DONE of one that was not scheduled", []word{{"A", done}, {"B", sync_}}, "B"},
		{"WAIT takes out, SYNC puts back at the tail", []word{{"A", sync_}, {"B", sync_}, {"A", wait}, {"C", sync_}, {"A", sync_}}, "BCA"},
		{"DONE of one that waits", []word{{"A", wait}, {"A", done}, {"B", sync_}}, "B"},
		{"scheduled anew", []word{{"A", sync_}, {"B", sync_}, {"A", done}, {"A", sync_}}, "BA"},
	} {
		t.Run(row.name, func(t *testing.T) {
			run := func(r *tasklet.Runner, say func(f func())) string {
				h := &history{}
				all := map[string]*script{"A": h.play("A"), "B": h.play("B"), "C": h.play("C")}
				say(func() {
					for _, w := range row.words {
						require.NoError(t, r.Schedule(all[w.who], w.d))
					}
				})
				require.NoError(t, r.Run())
				return h.take()
			}
			r := tasklet.NewRunner()
			require.Equal(t, row.want, run(r, func(f func()) { f() }), "before Run")
			require.Equal(t, row.want, run(r, func(f func()) {
				require.NoError(t, r.Schedule(tasklet.New(func(*tasklet.Runner) tasklet.Directive { f(); return done }), sync_))
			}), "within a phase")
			require.Equal(t, row.want, run(r, func(f func()) {
				require.NoError(t, r.Schedule(tasklet.New(func(r *tasklet.Runner) tasklet.Directive {
					r.Act().Spawn(act.Func(func(*act.Task) act.Directive { f(); return act.Done }))
					return done
				}), sync_))
			}), "on the thread, but in no phase")
		})
	}
}

// trace records the turns of tasks and their verdicts.
func trace(h *history) act.Config {
	return act.Config{Trace: &act.Trace{
		TurnStart: func(t *act.Task) {
			if !hook.IsDemon(t) {
				h.note("<")
			}
		},
		TurnEnd: func(t *act.Task, d act.Directive) {
			if !hook.IsDemon(t) {
				h.note(" " + t.String() + " " + d.String() + ">")
			}
		},
		Ended: func(t *act.Task, err error) {
			if err != nil && !hook.IsDemon(t) {
				h.note("[" + t.String() + ": " + err.Error() + "]")
			}
		},
	}}
}

func TestEachSYNCPhaseIsATurnThatATraceShows(t *testing.T) {
	h := &history{}
	r, _ := observed(trace(h))
	schedule(t, r, sync_, h.play("A", sync_, sync_), h.play("B", sync_))
	require.NoError(t, r.Run())
	require.Equal(t, "<A A Yield><B B Yield><A A Yield><B B Done><A A Done>", h.take())
}

// A member that waits has an empty turn, and so has one that was moved.
func TestTurnsWithoutAPhase(t *testing.T) {
	h := &history{}
	r, _ := observed(trace(h))
	resume := r.Suspend(h.play("W"))
	schedule(t, r, sync_, &phases{"R", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		schedule(t, r, sync_, h.play("A"), h.play("B"))
		require.NoError(t, resume.Resume(sync_))
		return done
	}})
	require.NoError(t, r.Run())
	require.Equal(t, "< R Done>< W Wait><A A Done><B B Done><W W Done>", h.take(), "the turn of W is that of its coming")

	a := h.play("A")
	schedule(t, r, sync_, &phases{"R", func(_ tasklet.Tasklet, r *tasklet.Runner) tasklet.Directive {
		schedule(t, r, sync_, a, h.play("B"), a)
		return done
	}})
	require.NoError(t, r.Run())
	require.Equal(t, "< R Done>< A Wait><B B Done><A A Done>", h.take())
}

// A tasklet has its turns among the tasks like any other, however many tasklets there are.
func TestTaskletsShareTheRoundWithTasks(t *testing.T) {
	h := &history{}
	s := act.New(act.Config{})
	defer s.Close()
	g := tasklet.RunnerOf(s)
	schedule(t, g, sync_, h.play("A", sync_, sync_), h.play("B", sync_, sync_), h.play("C", sync_, sync_))
	s.Spawn(act.Func(func(*act.Task) act.Directive {
		h.note("-")
		if h.count("C") == 3 {
			return act.Done
		}
		return act.Yield
	}))
	require.NoError(t, s.Run())
	require.Equal(t, "ABC-ABC-ABC-", strings.TrimLeft(h.take(), "-"), "after the first pass")
}
