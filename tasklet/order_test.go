package tasklet_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/tasklet"
)

// trace records the turns of tasks and their Directives.
func trace(h *history) act.Config {
	return act.Config{Trace: &act.Trace{
		TurnStart: func(t *act.Task) {
			if !t.Demon() {
				h.note("<")
			}
		},
		TurnEnd: func(t *act.Task, d act.Directive) {
			if !t.Demon() {
				h.note(" " + t.String() + " " + d.String() + ">")
			}
		},
		Ended: func(t *act.Task, err error) {
			if err != nil && !t.Demon() {
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
