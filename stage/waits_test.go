package stage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// gated is a store that answers a claim when it may.
type gated struct {
	store.Store
	claim chan struct{}
}

func (g gated) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	<-g.claim
	return g.Store.Claim(ctx, c)
}

func rowOf(t *testing.T, s *act.Scheduler) (found facts.Stages) {
	t.Helper()
	n := 0
	s.Internals().EachTask(1, func(x *act.Task) bool {
		if v, ok := x.Action().(facts.Lister); ok {
			require.False(t, v.List(true, func(row any) bool { found, n = *row.(*facts.Stages), n+1; return true }))
			require.False(t, v.List(false, nil))
		}
		return true
	})
	require.Equal(t, 1, n)
	return found
}

func TestWhatAnEngineSays(t *testing.T) {
	s := gated{memory.New(nil), make(chan struct{})}
	work := make(chan struct{})
	e, err := stage.New(stage.Config{
		Store:      s,
		Worker:     "w",
		Workers:    3,
		Kinds:      map[string]stage.Kind{"report": {Chain: stage.Begin("NEW").Then("WORKING", "p", "DONE")}},
		Processors: map[string]stage.Processor{"p": func(context.Context, *store.Task) (store.Commit, error) { <-work; return nil, nil }},
	})
	require.NoError(t, err)
	l := servertest.New(t, act.Config{})
	require.NoError(t, e.Setup(l.S))
	_, err = e.Enqueue(t.Context(), "report", nil)
	require.NoError(t, err)

	l.UntilSaid("the store, for a claim")
	require.Equal(t, facts.Stages{
		Worker: "w", Kinds: []string{"report"}, Workers: 3, Waits: []string{"the store, for a claim"},
	}, rowOf(t, l.S))
	close(s.claim)
	l.Until("its processor runs", func() bool {
		all := rowOf(t, l.S).Running
		return len(all) == 1 && all[0] == "report 1 at WORKING"
	})
	l.UntilSaid("tasks to claim", "a step on another goroutine: report 1 at WORKING")
	close(work)
	l.Until("it has finished", func() bool { return rowOf(t, l.S).Finished == 1 })
	l.Until("it is forgotten", func() bool { return len(rowOf(t, l.S).Running) == 0 })
	got := rowOf(t, l.S)
	require.EqualValues(t, 1, got.Claimed)
	require.Zero(t, got.Failed+got.Suspended+got.Lost)
	l.S.Shutdown(servertest.Drain)
	l.Until("its end", func() bool { return len(servertest.Said(l.S)) == 0 })
}
