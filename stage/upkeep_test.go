package stage_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/stretchr/testify/require"
)

// TestRetention has 2500 tasks that were cancelled, and an engine whose first call is not answered. No other calls
// happen at these times.
func TestRetention(t *testing.T) {
	t.Parallel()
	const age, poll = 2 * time.Minute, 6 * time.Second
	onGoroutines(t, func(t *testing.T, run host) {
		var at []time.Time
		s := &unreliable{memory.New(nil), func(_ context.Context, call string, arg any, do func() error) error {
			if call != "Purge" {
				return do()
			}
			require.Equal(t, fmt.Sprint(store.Canceled, " ", age, " 1000"), arg)
			if at = append(at, time.Now()); len(at) == 1 {
				return errors.New("no answer")
			}
			return do()
		}}
		e := engineOf(t, s, 1, nothing, func(cfg *stage.Config) {
			cfg.Upkeep.Retention, cfg.Poll = map[store.Status]time.Duration{store.Canceled: age}, poll
		})
		for range 2500 {
			_, err := e.Cancel(t.Context(), enqueued(t, e, ""))
			require.NoError(t, err)
		}
		left := func() int {
			all, err := s.List(t.Context(), store.Selection{})
			require.NoError(t, err)
			return len(all)
		}
		begun := time.Now()
		stop := run(e)
		time.Sleep(age - 1)
		require.Equal(t, 2500, left(), "none is old enough")
		for i := range at[1:] {
			between, want := at[i+1].Sub(at[i]), age/10
			if i == 0 {
				want = poll
			}
			require.True(t, want/2 <= between && between <= want*3/2, "%d: %v", i, between)
		}
		time.Sleep(age / 5)
		require.Zero(t, left())
		n := len(at) - 1
		for at[n].Sub(at[n-1]) > 0 {
			n--
		}
		require.Equal(t, at[n-2], at[n], "1000, 1000 and 500, without a pause")
		require.GreaterOrEqual(t, at[n].Sub(begun), age)
		require.NoError(t, stop(shutdown.Policy{Kind: shutdown.Unbounded}))
	})
}

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
