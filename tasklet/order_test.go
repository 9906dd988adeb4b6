package tasklet_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
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
