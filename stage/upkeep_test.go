package stage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/shutdown"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/memory"
	"github.com/daimon-go/daimon/stage/store"
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
