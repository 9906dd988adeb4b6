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

// hanging is a Store that does not answer some heartbeats before their contexts end.
type hanging struct {
	stage.Store
	hang  int // how many
	asked []time.Time
	given []time.Duration
}

func (h *hanging) Heartbeat(ctx context.Context, leases []stage.Lease, length time.Duration) ([]stage.Beat, error) {
	end, _ := ctx.Deadline()
	h.asked = append(h.asked, time.Now())
	h.given = append(h.given, time.Until(end))
	if h.hang--; h.hang >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Store.Heartbeat(ctx, leases, length)
}

// TestHeartbeatsThatHangAreGivenUp has a stage of three leases, of which the first heartbeats are not answered. One that is
// due meanwhile is sent at once, and the worker keeps the task. The clock is that of synctest.
func TestHeartbeatsThatHangAreGivenUp(t *testing.T) {
	for name, run := range map[string]func(context.Context, *stage.Engine) error{
		"goroutines": func(ctx context.Context, e *stage.Engine) error { return e.Run(ctx) },
		"a Group": func(ctx context.Context, e *stage.Engine) error {
			return act.Run(ctx, act.Config{Schedulers: 1, Logger: zap.NewNop()}, e.Setup)
		},
	} {
		for _, row := range []struct {
			lease, heartbeat, given time.Duration
			hang                    int
		}{
			{15 * time.Second, time.Second, 3 * time.Second, 2},     // three heartbeats
			{15 * time.Second, 4 * time.Second, 5 * time.Second, 1}, // a third of the lease
		} {
			t.Run(name+" "+row.lease.String()+" "+row.heartbeat.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &hanging{Store: memory.New(nil), hang: row.hang}
					ctx, cancel := context.WithCancel(t.Context())
					e := engineOf(t, s, 1, processor(func(ctx context.Context) {
						select {
						case <-ctx.Done():
						case <-time.After(3 * row.lease):
						}
					}), func(cfg *stage.Config) {
						cfg.Lease, cfg.Heartbeat = row.lease, row.heartbeat
						cfg.Ended = func(stage.Task) { cancel() }
					})
					_, err := e.Enqueue(ctx, "task", nil)
					require.NoError(t, err)
					require.NoError(t, run(ctx, e))
					x, err := s.Get(t.Context(), 1)
					require.NoError(t, err)
					require.EqualValues(t, 1, x.Token)
					require.True(t, x.Finished(), "%+v", x)
					require.Equal(t, row.given, s.given[0])
					require.Equal(t, row.given, s.asked[1].Sub(s.asked[0]))
				})
			})
		}
	}
}
