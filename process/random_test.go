package process_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/process"
)

// 500 processes pass tokens on at random, on two schedulers, while goroutines send and poke. Each process has plain fields
// that the race detector watches, which the search of interleavings cannot do. No token is lost or doubled.
func TestProcessesSendAtRandom(t *testing.T) {
	const processes, outside, each = 500, 2, 1000
	hops := tier.Choose(200, 200, 5000)
	var left atomic.Int64 // tokens
	left.Store(outside * each)
	over := make(chan struct{})
	all := make([]process.Ref[int], processes)
	bodies := make([]*passer, processes)
	r := start(t, 2, func(sys *process.System) {
		for i := range all {
			bodies[i] = &passer{all: all, rng: rand.New(rand.NewPCG(7, uint64(i))), arrived: func() {
				if left.Add(-1) == 0 {
					close(over)
				}
			}}
			all[i] = process.Spawn(sys, bodies[i], process.Options{Limit: -1})
		}
	})
	for i := range outside {
		go func() {
			rng := rand.New(rand.NewPCG(8, uint64(i)))
			for range each {
				_ = all[rng.IntN(processes)].Send(r.sys, hops)
				if p := bodies[rng.IntN(processes)].self.Load(); p != nil {
					p.Poke()
				}
			}
		}()
	}
	servertest.Receive(t, over)
	for _, to := range all {
		require.True(t, to.Kill())
	}
	r.end()
	passed := 0
	for _, b := range bodies {
		passed += b.passed
	}
	require.Equal(t, outside*each*hops, passed)
	require.Zero(t, left.Load())
}

// passer passes tokens on, each as many times as it says.
type passer struct {
	self    atomic.Pointer[process.Self[int]]
	all     []process.Ref[int]
	arrived func()

	passed int // plain fields: only its turns use them
	rng    *rand.Rand
}

func (x *passer) Act(p *process.Self[int]) act.Directive {
	x.self.Store(p)
	for {
		m, ok := p.Receive()
		switch {
		case !ok && x.rng.IntN(16) == 0:
			return act.Yield
		case !ok:
			return act.Wait
		case m == 0:
			x.arrived()
			continue
		}
		x.passed++
		if err := x.all[x.rng.IntN(len(x.all))].Send(p, m-1); err != nil {
			return p.Fail(err)
		}
	}
}
