package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// Workers take the oldest tasks, and the newest are on the first page.
func TestTasksAtWorkAreAtTheTop(t *testing.T) {
	s := memory.New(nil)
	e, err := stage.New(stage.Config{Store: s, Kinds: kinds, Processors: (&Jobs{}).processors()})
	require.NoError(t, err)
	b := &board{engine: e}
	for range 2*page - 2 {
		_, err = e.Enqueue(t.Context(), "mail", nil)
		require.NoError(t, err)
	}
	_, err = s.Claim(t.Context(), store.Claim{Kinds: []string{"mail"}, Limit: 2, Length: time.Minute})
	require.NoError(t, err)
	first, err := b.view(t.Context(), query{})
	require.NoError(t, err)
	require.True(t, first.More)
	require.Len(t, first.Tasks, page)
	var ids []store.ID
	for _, x := range first.Tasks[:4] {
		ids = append(ids, x.ID)
	}
	require.Equal(t, []store.ID{2, 1, 2*page - 2, 2*page - 3}, ids)
	older, err := b.view(t.Context(), query{before: first.Tasks[page-1].ID})
	require.NoError(t, err)
	require.False(t, older.More)
	require.Len(t, older.Tasks, page)
}
