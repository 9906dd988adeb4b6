package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// hints starts to watch, and returns what is heard, and how to stop.
func hints(t *testing.T, s *postgres.Store) (heard chan store.Hint, stop func() error) {
	t.Helper()
	heard = make(chan store.Hint, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, func(h store.Hint) { heard <- h }) }()
	stop = func() error {
		cancel()
		return <-ended
	}
	t.Cleanup(cancel)
	return heard, stop
}

// listens waits until connections of the database listen on the schema of a store: they are idle when that has been done.
func listens(t *testing.T, s *postgres.Store, connections int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, s, `pg_stat_activity WHERE query = $1 AND state = 'idle'`, "LISTEN "+s.Schema()) == connections
	}, 2*time.Minute, 5*time.Millisecond)
}

func next(t *testing.T, heard chan store.Hint) store.Hint {
	t.Helper()
	select {
	case h := <-heard:
		return h
	case <-time.After(2 * time.Minute):
		require.FailNow(t, "no hint")
		return store.Hint{}
	}
}

// TestWatch makes changes over another store.
func TestWatch(t *testing.T) {
	cfg := newConfig(t)
	s, other := open(t, cfg), open(t, cfg)
	heard, stop := hints(t, s)
	listens(t, s, 1)
	is := func(want store.Hint) {
		t.Helper()
		require.Equal(t, want, next(t, heard))
	}
	l := claimed(t, other, time.Hour)
	is(store.Hint{Kind: "a"})
	ids, err := other.Enqueue(t.Context(), store.NewTask{Kind: "b", Stage: "NEW"}, store.NewTask{Kind: "b", Stage: "NEW"})
	require.NoError(t, err)
	is(store.Hint{Kind: "b"}) // once

	other.Beside(func() { enqueued(t, other, store.NewTask{Kind: "c", Stage: "NEW"}) })
	is(store.Hint{Kind: "c"})
	ask := func(ok bool, err error) {
		t.Helper()
		require.NoError(t, err)
		require.True(t, ok)
	}
	ask(other.Suspend(t.Context(), l.Task))
	is(store.Hint{Wanted: l.Task})
	ask(other.Cancel(t.Context(), l.Task))
	is(store.Hint{Wanted: l.Task})
	ask(other.Suspend(t.Context(), ids[0])) // which no worker holds
	ask(other.Resume(t.Context(), ids[0], false))
	is(store.Hint{Kind: "b"})
	require.ErrorIs(t, stop(), context.Canceled)
	listens(t, s, 0)
	require.Empty(t, heard)
}

// A connection that is lost ends Watch with an error: it is called again.
func TestWatchLost(t *testing.T) {
	s := open(t, newConfig(t))
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(t.Context(), func(store.Hint) {}) }()
	listens(t, s, 1)
	do(t, s, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1`, "LISTEN "+s.Schema())
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "listen")
	case <-time.After(2 * time.Minute):
		require.FailNow(t, "it goes on")
	}
}

// The last task of a store is announced even if it is closed at once.
func TestTheLastTaskOfAStoreThatIsClosedIsAnnounced(t *testing.T) {
	cfg := newConfig(t)
	s := open(t, cfg)
	heard, stop := hints(t, s)
	listens(t, s, 1)
	for range 20 {
		other, err := postgres.Open(t.Context(), cfg)
		require.NoError(t, err)
		enqueued(t, other, store.NewTask{Kind: "first", Stage: "CREATED"})
		enqueued(t, other, store.NewTask{Kind: "last", Stage: "CREATED"})
		require.NoError(t, other.Close())
		for next(t, heard).Kind != "last" {
		}
	}
	require.ErrorIs(t, stop(), context.Canceled)
}

// What does not listen is quiet.
func TestWatchWithPooler(t *testing.T) {
	cfg := newConfig(t)
	cfg.Pooler = true
	s := open(t, cfg)
	heard, stop := hints(t, s)
	claimed(t, s, time.Hour)
	require.ErrorIs(t, stop(), context.Canceled)
	require.Empty(t, heard)
}
