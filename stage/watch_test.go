package stage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// watched is a store that passes on hints. An error in their place is what Watch returns.
type watched struct {
	stage.Store
	hints chan any
	calls []time.Time // of Watch
}

func (s *watched) Watch(ctx context.Context, heard func(stage.Hint)) error {
	s.calls = append(s.calls, time.Now())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case h := <-s.hints:
			if err, ok := h.(error); ok {
				return err
			}
			heard(h.(stage.Hint))
		}
	}
}

// An engine that is to poll and to send heartbeats every hour follows hints at once.
func TestHints(t *testing.T) {
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &watched{Store: memory.New(nil), hints: make(chan any)}
				var causes []error
				e := engineOf(t, s, 1, processor(func(ctx context.Context) {
					<-ctx.Done()
					causes = append(causes, stage.CheckSuspended(ctx))
				}), func(cfg *stage.Config) {
					cfg.Poll, cfg.Heartbeat, cfg.Lease = time.Hour, time.Hour, 3*time.Hour
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- run(ctx, e) }()
				synctest.Wait() // it has polled once
				ids, err := s.Enqueue(ctx, stage.NewTask{Kind: "task", Stage: "0"})
				require.NoError(t, err)
				begun := time.Now()
				is := func(want stage.Status) {
					t.Helper()
					synctest.Wait()
					x, err := s.Get(ctx, ids[0])
					require.NoError(t, err)
					require.Equal(t, want, x.Status)
				}
				s.hints <- stage.Hint{Kind: "of others"}
				is(stage.Normal)
				s.hints <- stage.Hint{Kind: "task"}
				is(stage.InProcessing)
				_, err = s.Suspend(ctx, ids[0])
				require.NoError(t, err)
				s.hints <- stage.Hint{Wanted: ids[0] + 1}
				is(stage.InProcessing)
				s.hints <- stage.Hint{Wanted: ids[0]}
				is(stage.Suspended)
				require.Equal(t, []error{stage.ErrSuspended}, causes)
				require.Equal(t, begun, time.Now(), "by the clock all this is one moment")

				s.hints <- errors.New("deaf")
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				require.Len(t, s.calls, 2, "it is called again")
				require.GreaterOrEqual(t, s.calls[1].Sub(begun), 30*time.Minute, "after about a poll")
				cancel()
				require.NoError(t, <-ended)
				time.Sleep(time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
			})
		})
	}
}
