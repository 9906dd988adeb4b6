package act_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

func TestAGroupNeverEndsWhileWorkIsOnItsWayAndNeverHangs(t *testing.T) {
	for _, threads := range []act.Threads{act.Locked, act.Pinned} {
		g := act.NewGroup(act.Config{Schedulers: 4, Threads: threads})
		var sent, run atomic.Int64
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		for round := range 1000 {
			hops := int32(round % 7)
			err := g.Run(t.Context(), func(s *act.Scheduler) error {
				if s.Index() == round%4 {
					r := rand.New(rand.NewPCG(seed, uint64(round)))
					for range 1 + round%3 {
						hop(s, r, &sent, &run, hops)
					}
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, sent.Load(), run.Load(), "round %d", round)
		}
		require.NoError(t, g.Close())
	}
}

// hop posts to a scheduler that has nothing else a function that spawns a task that posts on.
func hop(s *act.Scheduler, r *rand.Rand, sent, run *atomic.Int64, left int32) {
	to := s.Group().Schedulers()[r.IntN(4)]
	pick := r.Uint64()
	sent.Add(1)
	to.Post(func(s *act.Scheduler) {
		run.Add(1)
		if left == 0 {
			return
		}
		if pick&1 == 0 {
			hop(s, rand.New(rand.NewPCG(pick, 1)), sent, run, left-1)
			return
		}
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			hop(s, rand.New(rand.NewPCG(pick, 2)), sent, run, left-1)
			return act.Done
		}))
	})
}

var _ = context.Background
