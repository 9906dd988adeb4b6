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
