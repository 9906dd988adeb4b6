package process_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

func TestRandomSends(t *testing.T) {
	sys := process.New(process.Config{})
	g := act.NewGroup(act.Config{Schedulers: 2})
	defer g.Close()
	const n = 500
	refs := make([]process.Ref[int], n)
	var in [n]atomic.Int32
	var handled atomic.Int64
	end := time.Now().Add(2 * time.Second)
	require.NoError(t, g.Run(t.Context(), sys.Setup, func(s *act.Scheduler) error {
		if s.Index() > 0 {
			return nil
		}
		for i := range refs {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			refs[i] = process.Spawn(sys, process.Handler[int](func(p *process.Self[int], m int) {
				if in[i].Add(1) != 1 {
					panic("twice")
				}
				handled.Add(1)
				if m == 1000 || time.Now().After(end) {
					p.Exit()
				} else {
					for range 1 + rng.IntN(2) {
						_ = refs[rng.IntN(n)].Send(p, m)
					}
				}
				in[i].Add(-1)
			}), process.Options{Limit: process.Unbounded})
		}
		for i := range refs {
			_ = refs[i].Send(sys, i%7)
		}
		go func() {
			time.Sleep(3 * time.Second)
			for _, r := range refs {
				_ = r.Send(sys, 1000)
			}
		}()
		return nil
	}))
	t.Logf("%d %+v", handled.Load(), sys.Stats())
}
