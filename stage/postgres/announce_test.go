package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// listening returns hints that another store of the same tasks hears, and only from when it listens.
func listening(t *testing.T, cfg postgres.Config, s *postgres.Store) <-chan stage.Hint {
	other := open(t, cfg)
	hints := make(chan stage.Hint, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- other.Watch(ctx, func(h stage.Hint) { hints <- h }) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
	require.Eventually(t, func() bool {
		enqueued(t, s, stage.NewTask{Kind: "listening?", Stage: "CREATED"})
		return len(hints) > 0
	}, time.Minute, 20*time.Millisecond)
	return hints
}

// await waits for a hint of that kind.
func await(t *testing.T, hints <-chan stage.Hint, kind string) {
	t.Helper()
	for late := time.After(20 * time.Second); ; {
		select {
		case h := <-hints:
			if h.Kind == kind {
				return
			}
		case <-late:
			require.FailNow(t, "no hint", kind)
		}
	}
}

func TestTheLastTaskOfAStoreThatIsClosedIsAnnounced(t *testing.T) {
	cfg := newConfig(t)
	hints := listening(t, cfg, open(t, cfg))
	for range 20 {
		s, err := postgres.Open(t.Context(), cfg)
		require.NoError(t, err)
		enqueued(t, s, stage.NewTask{Kind: "first", Stage: "CREATED"})
		enqueued(t, s, stage.NewTask{Kind: "last", Stage: "CREATED"})
		require.NoError(t, s.Close())
		await(t, hints, "last")
	}
}

func TestTasksThatAreEnqueuedAtTheSameTimeShareAnnouncements(t *testing.T) {
	cfg := newConfig(t)
	s := open(t, cfg)
	hints := listening(t, cfg, s)
	const tasks = 200
	heard := 0
	for range tasks {
		enqueued(t, s, stage.NewTask{Kind: "many", Stage: "CREATED"})
	}
	enqueued(t, s, stage.NewTask{Kind: "end", Stage: "CREATED"}) // no sooner than all others
	for ended := false; !ended; {
		select {
		case h := <-hints:
			if h.Kind == "many" {
				heard++
			}
			ended = h.Kind == "end"
		case <-time.After(20 * time.Second):
			require.FailNow(t, "no hint")
		}
	}
	require.Positive(t, heard)
	require.Less(t, heard, tasks)
}
