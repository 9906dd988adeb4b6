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

// purged is a store that notes the calls of Purge, of which the first ones fail.
type purged struct {
	stage.Store
	fail  int
	calls []stage.Purge
	at    []time.Time
}

func (s *purged) Purge(ctx context.Context, p stage.Purge) (int, error) {
	s.calls, s.at = append(s.calls, p), append(s.at, time.Now())
	if s.fail--; s.fail >= 0 {
		return 0, errors.New("no answer")
	}
	return s.Store.Purge(ctx, p)
}

// retentionPoll is long, so that there are few polls.
const retentionPoll = 30 * time.Second

// retains has an engine run for a while over n tasks that were cancelled, and returns its calls, and what is left.
func retains(t *testing.T, run func(context.Context, *stage.Engine) error, s *purged, keep map[stage.Status]time.Duration, during time.Duration, n int) []stage.Task {
	s.Store = memory.New(nil)
	e := engineOf(t, s, 1, processor(func(context.Context) {}), func(cfg *stage.Config) { cfg.Retention, cfg.Poll = keep, retentionPoll })
	all := make([]stage.NewTask, n)
	for i := range all {
		n, err := e.NewTask("task", nil)
		require.NoError(t, err)
		all[i] = n
	}
	ids, err := e.EnqueueAll(t.Context(), all...)
	require.NoError(t, err)
	for _, id := range ids {
		_, err := s.Cancel(t.Context(), id)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	require.NoError(t, run(ctx, e))
	left, err := s.List(t.Context(), stage.Selection{})
	require.NoError(t, err)
	time.Sleep(time.Second) // of synctest's clock, in which idle goroutines of the Group's executor end
	return left
}

func TestRetention(t *testing.T) {
	const age = 20 * time.Minute
	keep := map[stage.Status]time.Duration{stage.Cancelled: age}
	want := stage.Purge{Status: stage.Cancelled, Age: age, Limit: 1000}
	for name, run := range hosts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &purged{}
				require.Len(t, retains(t, run, s, keep, age-time.Minute, 5), 5, "none is old enough")
				for i, p := range s.calls {
					require.Equal(t, want, p)
					if i > 0 {
						between := s.at[i].Sub(s.at[i-1])
						require.True(t, 30*time.Second <= between && between < 90*time.Second, "%v", between)
					}
				}

				s = &purged{}
				require.Empty(t, retains(t, run, s, keep, age+2*time.Minute, 2500))
				n := len(s.calls) - 1
				for s.at[n].Sub(s.at[n-1]) > 0 {
					n--
				}
				require.Equal(t, s.at[n-2], s.at[n], "1000, 1000 and 500, without a pause")

				s = &purged{fail: 3}
				require.Empty(t, retains(t, run, s, map[stage.Status]time.Duration{stage.Cancelled: 0}, 10*retentionPoll, 2500))
				require.GreaterOrEqual(t, len(s.calls), 6)
				for i, between := range []time.Duration{1, 1, 1, 0, 0, 1} {
					got, between := s.at[i+1].Sub(s.at[i]), between*retentionPoll
					require.True(t, between/2 <= got && got <= between*3/2, "%d: %v", i, got)
				}

				s = &purged{}
				require.Len(t, retains(t, run, s, map[stage.Status]time.Duration{stage.Normal: 0, stage.Error: 0}, age, 5), 5)
				s = &purged{}
				require.Len(t, retains(t, run, s, nil, age, 5), 5)
				require.Empty(t, s.calls)
			})
		})
	}
}

func TestInvalidRetention(t *testing.T) {
	cfg := good()
	cfg.Retention = map[stage.Status]time.Duration{stage.Suspended: time.Hour, stage.Normal: -1, stage.Error: 0}
	_, err := stage.New(cfg)
	require.ErrorContains(t, err, `Config.Retention has a status in which no task ends: "SUSPENDED"`)
	require.ErrorContains(t, err, `Config.Retention["NORMAL"] is negative: -1ns`)
	require.NotContains(t, err.Error(), "ERROR")
}
