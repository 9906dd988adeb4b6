package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// asked is a store that notes for how many tasks it is asked.
type asked struct {
	stage.Store
	limits []int
}

func (a *asked) List(ctx context.Context, s stage.Selection) ([]stage.Task, error) {
	a.limits = append(a.limits, s.Limit)
	return a.Store.List(ctx, s)
}

// A store with very many tasks would look at all of them, in vain, for more of a state than there are.
func TestFiltersAskForNoMoreThanThereAre(t *testing.T) {
	s := &asked{Store: memory.New(nil)}
	e, err := stage.New(stage.Config{Store: s, Kinds: kinds, Provider: (&Jobs{}).processors()})
	require.NoError(t, err)
	b := &board{engine: e}
	mail := stage.NewTask{Kind: "mail", Stage: "WRITTEN"}
	_, err = s.Enqueue(t.Context(), mail, mail, mail)
	require.NoError(t, err)
	claimed, err := s.Claim(t.Context(), stage.Claim{Kinds: []string{"mail"}, Limit: 1, Length: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Finish(t.Context(), claimed[0].Lease(), stage.Passage{From: "WRITTEN", To: "SENT", Last: true}, nil))
	for _, row := range []struct {
		query query
		want  []int
	}{
		{query{}, []int{3}},
		{query{kind: "picture"}, nil},
		{query{state: waiting}, []int{2}},
		{query{state: finished}, []int{1}},
		{query{state: finished, kind: "invoice"}, nil},
		{query{state: suspended}, nil},
	} {
		s.limits = nil
		v, err := b.view(t.Context(), row.query)
		require.NoError(t, err)
		require.Equal(t, row.want, s.limits, "%v", row.query)
		sum := 0
		for _, n := range row.want {
			sum += n
		}
		require.Len(t, v.Tasks, sum)
	}
}

// Workers take the oldest tasks, and the newest are on the first page.
func TestTasksAtWorkAreAtTheTop(t *testing.T) {
	s := memory.New(nil)
	e, err := stage.New(stage.Config{Store: s, Kinds: kinds, Provider: (&Jobs{}).processors()})
	require.NoError(t, err)
	b := &board{engine: e}
	for range 2*page - 2 {
		_, err = e.Enqueue(t.Context(), "mail", nil)
		require.NoError(t, err)
	}
	_, err = s.Claim(t.Context(), stage.Claim{Kinds: []string{"mail"}, Limit: 2, Length: time.Minute})
	require.NoError(t, err)
	first, err := b.view(t.Context(), query{})
	require.NoError(t, err)
	require.True(t, first.More)
	require.Len(t, first.Tasks, page)
	var ids []stage.ID
	for _, x := range first.Tasks[:4] {
		ids = append(ids, x.ID)
	}
	require.Equal(t, []stage.ID{2, 1, 2*page - 2, 2*page - 3}, ids)
	older, err := b.view(t.Context(), query{before: first.Tasks[page-1].ID})
	require.NoError(t, err)
	require.False(t, older.More)
	require.Len(t, older.Tasks, page)
}
