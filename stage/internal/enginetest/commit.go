package enginetest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// Working shows a new task of kind "a" at the stage that Last ends.
var Working = []store.Show{{Kind: "a", Found: "CREATED", Stage: "WORKING"}}

// Last is the end of a task of kind "a".
var Last = store.Passage{From: "WORKING", To: "DONE", Last: true}

// Enqueued adds a task.
func Enqueued(t testing.TB, s store.Store, n store.NewTask) store.ID {
	t.Helper()
	ids, err := s.Enqueue(t.Context(), n)
	require.NoError(t, err)
	require.Len(t, ids, 1)
	return ids[0]
}

// Claimed adds a task of kind "a" and claims it.
func Claimed(t testing.TB, s store.Store, length time.Duration) store.Lease {
	t.Helper()
	id := Enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED"})
	tasks, err := s.Claim(t.Context(), store.Claim{Kinds: []string{"a"}, Limit: 1, Length: length, Shows: Working})
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	require.Equal(t, id, tasks[0].ID)
	return tasks[0].Lease()
}

// Commit tests a store in SQL: the rows that insert writes for a task, in the transaction of a Commit, are there exactly when
// the stage has ended. rows counts them, and other is the store, both on another connection.
func Commit(t *testing.T, s, other store.Store, insert func(context.Context, store.Tx, store.ID) error, rows func(store.ID) int) {
	is := func(l store.Lease, n int, state string) {
		t.Helper()
		task, err := other.Get(t.Context(), l.Task)
		require.NoError(t, err)
		require.Equal(t, n, rows(l.Task))
		require.Equal(t, state, task.Stage+" "+string(task.Status))
	}
	l := Claimed(t, s, time.Hour)
	var kept store.Tx
	require.NoError(t, s.Finish(t.Context(), l, Last, func(ctx context.Context, tx store.Tx) error {
		require.NoError(t, insert(ctx, tx, l.Task))
		is(l, 0, "WORKING IN_PROCESSING")
		kept = tx
		return nil
	}))
	is(l, 1, "DONE NORMAL")
	require.Error(t, insert(t.Context(), kept, l.Task), "its transaction is over")

	refused := errors.New("on purpose")
	for name, end := range map[string]func() error{
		"an error": func() error { return refused },
		"a panic":  func() error { panic("on purpose") },
		"a Goexit": func() error { runtime.Goexit(); return nil },
	} {
		l := Claimed(t, s, time.Hour)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			err := s.Finish(t.Context(), l, Last, func(ctx context.Context, tx store.Tx) error {
				require.NoError(t, insert(ctx, tx, l.Task))
				return end()
			})
			require.Equal(t, refused, err, name)
		}()
		<-ended
		is(l, 0, "WORKING IN_PROCESSING")
	}

	foreign := memory.New(nil)
	l = Claimed(t, foreign, time.Hour)
	defer func() {
		require.Regexp(t, `^\w+: Tx is for transactions of this package's Store, and this is a \*memory.tx$`, recover())
	}()
	_ = foreign.Finish(t.Context(), l, Last, func(ctx context.Context, tx store.Tx) error { return insert(ctx, tx, l.Task) })
}
