package stage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
)

// watched is a store that passes on hints. An error in their place is what Watch returns.
type watched struct {
	store.Store
	hints    chan any
	calls    []time.Time // of Watch
	enqueuer int64       // of the latest task
	claims   atomic.Int64
}

func (s *watched) Enqueue(ctx context.Context, tasks ...store.NewTask) ([]store.ID, error) {
	s.enqueuer = transition.Enqueuer(ctx)
	return s.Store.Enqueue(ctx, tasks...)
}

func (s *watched) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	s.claims.Add(1)
	return s.Store.Claim(ctx, c)
}

func (s *watched) Watch(ctx context.Context, heard func(store.Hint)) error {
	s.calls = append(s.calls, time.Now())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case h := <-s.hints:
			if err, ok := h.(error); ok {
				return err
			}
			heard(h.(store.Hint))
		}
	}
}

// An engine that is to poll and to send heartbeats every hour follows hints at once.
func TestHints(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		s := &watched{Store: memory.New(nil), hints: make(chan any)}
		var causes []error
		e := engineOf(t, s, 1, processor(func(ctx context.Context) {
			<-ctx.Done()
			causes = append(causes, stage.CheckSuspended(ctx))
		}), func(cfg *stage.Config) {
			cfg.Poll, cfg.Heartbeat, cfg.Lease = time.Hour, time.Hour, 3*time.Hour
		})
		stop := run(e) // it has polled once
		ids, err := s.Enqueue(t.Context(), store.NewTask{Kind: "task", Stage: "0"})
		require.NoError(t, err)
		begun := time.Now()
		then := func(hint store.Hint, want store.Status) {
			t.Helper()
			s.hints <- hint
			synctest.Wait()
			require.Equal(t, want, get(t, s, ids[0]).Status)
		}
		then(store.Hint{Kind: "of others"}, store.Normal)
		then(store.Hint{Kind: "task"}, store.InProcessing)
		_, err = s.Suspend(t.Context(), ids[0])
		require.NoError(t, err)
		then(store.Hint{Wanted: ids[0] + 1}, store.InProcessing)
		then(store.Hint{Wanted: ids[0]}, store.Suspended)
		require.Equal(t, []error{store.ErrSuspended}, causes)
		require.Equal(t, begun, time.Now(), "by the clock all this is one moment")

		s.hints <- errors.New("deaf")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Len(t, s.calls, 2, "it is called again")
		require.GreaterOrEqual(t, s.calls[1].Sub(begun), 30*time.Minute, "after about a poll")
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}

// TestALoneTaskIsOneClaim enqueues a task, which ends, and has the engine hear of it.
func TestALoneTaskIsOneClaim(t *testing.T) {
	t.Parallel()
	onEachHost(t, func(t *testing.T, run host) {
		s := &watched{Store: memory.New(nil), hints: make(chan any)}
		e := engineOf(t, s, 1, nothing, func(cfg *stage.Config) {
			cfg.Poll, cfg.Heartbeat, cfg.Lease = time.Hour, time.Hour, 3*time.Hour
		})
		stop := run(e)
		before := s.claims.Load()
		id, err := e.Enqueue(t.Context(), "task", nil)
		require.NoError(t, err)
		synctest.Wait()
		s.hints <- store.Hint{Kind: "task", Enqueuer: s.enqueuer}
		synctest.Wait()
		require.Equal(t, "1", get(t, s, id).Stage)
		require.EqualValues(t, 1, s.claims.Load()-before)
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}
