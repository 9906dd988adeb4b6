package stage_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
)

// hanging is a Store that does not answer the first calls before their contexts end.
type hanging struct {
	stage.Store
	claims, heartbeats int // how many are left

	asked []time.Time // for heartbeats
	given []time.Duration
}

func hangs(ctx context.Context, left *int) error {
	if *left--; *left < 0 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hanging) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	if err := hangs(ctx, &h.claims); err != nil {
		return nil, err
	}
	return h.Store.Claim(ctx, c)
}

func (h *hanging) Heartbeat(ctx context.Context, leases []stage.Lease, length time.Duration) ([]stage.Beat, error) {
	end, _ := ctx.Deadline()
	h.asked, h.given = append(h.asked, time.Now()), append(h.given, time.Until(end))
	if err := hangs(ctx, &h.heartbeats); err != nil {
		return nil, err
	}
	return h.Store.Heartbeat(ctx, leases, length)
}

// ends has an engine work until it has ended a task, on goroutines and in a Group, with the clock of synctest.
func ends(t *testing.T, s hanging, p func(context.Context), change func(*stage.Config), check func(*testing.T, *hanging, stage.Task)) {
	for name, run := range map[string]func(context.Context, *stage.Engine) error{
		"goroutines": func(ctx context.Context, e *stage.Engine) error { return e.Run(ctx) },
		"a Group": func(ctx context.Context, e *stage.Engine) error {
			return act.Run(ctx, act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := s
				s.Store = memory.New(nil)
				ctx, cancel := context.WithCancel(t.Context())
				e := engineOf(t, &s, 1, processor(p), func(cfg *stage.Config) {
					cfg.Ended = func(stage.Task) { cancel() }
					change(cfg)
				})
				id, err := e.Enqueue(ctx, "task", nil)
				require.NoError(t, err)
				require.NoError(t, run(ctx, e))
				x, err := s.Get(t.Context(), id)
				require.NoError(t, err)
				require.True(t, x.Finished(), "%+v", x)
				check(t, &s, x)
			})
		})
	}
}

// A stage takes three leases, of which the first heartbeats are not answered. One that is due meanwhile is sent at once,
// and the worker keeps the task.
func TestHeartbeatsThatHangAreGivenUp(t *testing.T) {
	const lease = 15 * time.Second
	for _, row := range []struct {
		interval, given time.Duration
		hang            int
	}{
		{time.Second, 3 * time.Second, 2},     // three intervals
		{4 * time.Second, 5 * time.Second, 1}, // a third of the lease
	} {
		ends(t, hanging{heartbeats: row.hang}, func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-time.After(3 * lease):
			}
		}, func(cfg *stage.Config) { cfg.Lease, cfg.Heartbeat = lease, row.interval }, func(t *testing.T, s *hanging, x stage.Task) {
			require.EqualValues(t, 1, x.Token)
			require.Equal(t, row.given, s.given[0])
			require.Equal(t, row.given, s.asked[1].Sub(s.asked[0]))
		})
	}
}

// No heartbeat is answered: the context of the processor ends with the lease, and the task is claimed again.
func TestContextsEndWithTheLease(t *testing.T) {
	var begun []time.Time
	var lost time.Time
	var cause error
	ends(t, hanging{heartbeats: 1 << 30}, func(ctx context.Context) {
		if begun = append(begun, time.Now()); len(begun) == 1 {
			<-ctx.Done()
			lost, cause = time.Now(), stage.CheckSuspended(ctx)
		}
	}, func(*stage.Config) {}, func(t *testing.T, _ *hanging, x stage.Task) {
		require.EqualValues(t, 2, x.Token)
		require.ErrorIs(t, cause, stage.ErrLeaseLost)
		require.Less(t, lost.Sub(begun[0]), 17*time.Second) // a lease of 15, a heartbeat, and what it took to begin
		begun = nil
	})
}

func TestClaimsThatHangAreGivenUp(t *testing.T) {
	var begun time.Time
	ends(t, hanging{claims: 1}, func(context.Context) { begun = time.Now() }, func(*stage.Config) {}, func(t *testing.T, _ *hanging, x stage.Task) {
		require.Less(t, begun.Sub(x.Created), 10*time.Second) // half of the lease, and a poll
	})
}

// Work that ends while it is taken leaves no goroutine that waits for the time of the next heartbeat: TestMain would find it.
func TestNoHeartbeatsAreBegunForWorkThatHasEnded(t *testing.T) {
	for range 1000 {
		e, err := stage.New(stage.Config{
			Store: memory.New(nil), Lease: 3 * time.Hour, Heartbeat: time.Hour, Logger: zap.NewNop(),
			Chains: map[string]*stage.Chain{"nothing": stage.Begin("OPEN").Then("DOING", "do", "DONE")},
			Provider: stage.Processors{"do": stage.ProcessorFunc(func(context.Context, *stage.Task) (stage.Commit, error) {
				return nil, nil
			})},
		})
		require.NoError(t, err)
		for range 5 {
			_, err := e.Enqueue(t.Context(), "nothing", nil)
			require.NoError(t, err)
			_, err = e.Fire(t.Context())
			require.NoError(t, err)
			require.NoError(t, e.Wait(t.Context()))
		}
	}
}
