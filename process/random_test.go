package process_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/process"
)

// 500 processes pass tokens on at random, on two schedulers, while goroutines send and poke. No process ever runs on
// two threads at once: each counts its concurrent turns, and has plain fields that the race detector watches. No token
// is lost or doubled.
func TestProcessesSendAtRandom(t *testing.T) {
	const processes, tokens, outside = 500, 1500, 2
	var left atomic.Int64 // messages
	left.Store(tier.Choose[int64](200_000, 200_000, 10_000_000))
	enough := make(chan struct{})
	var over atomic.Bool
	var twice, back atomic.Int64
	all := make([]process.Ref[int], processes)
	bodies := make([]*passer, processes)
	r := start(t, 2, process.Config{Limit: process.Unbounded}, func(sys *process.System) {
		for i := range all {
			bodies[i] = &passer{all: all, rng: rand.New(rand.NewPCG(7, uint64(i))), over: &over, twice: &twice, back: &back}
			bodies[i].sent = func() {
				if left.Add(-1) == 0 {
					close(enough)
				}
			}
			all[i] = process.Spawn(sys, bodies[i], process.Options{})
		}
		for i := range tokens {
			require.NoError(t, all[i%processes].Send(sys, i))
		}
	})
	ended := make(chan int, outside)
	for i := range outside {
		go func() {
			rng := rand.New(rand.NewPCG(8, uint64(i)))
			sent := 0
			for !over.Load() {
				to := all[rng.IntN(processes)]
				if rng.IntN(2) == 0 {
					_ = to.Send(r.sys, tokens+sent)
					sent++
				} else {
					bodies[rng.IntN(processes)].poke()
				}
				time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
			}
			ended <- sent
		}()
	}
	servertest.Receive(t, enough)
	over.Store(true)
	expected := tokens
	for range outside {
		expected += servertest.Receive(t, ended)
	}
	r.quiescent()
	require.Zero(t, twice.Load(), "turns on two threads at once")
	require.EqualValues(t, expected, back.Load(), "tokens")
	for _, to := range all {
		require.True(t, to.Kill())
	}
	r.end()
	passed, moves, turns := 0, 0, 0
	for _, b := range bodies {
		passed, moves, turns = passed+b.passed, moves+b.moves, turns+b.turns
	}
	t.Logf("%d messages, %d turns, on another thread than the one before: %d, %+v", passed, turns, moves, r.sys.Stats())
	require.Positive(t, moves)
}

// passer passes tokens on until over is set. Then it keeps them.
type passer struct {
	self        atomic.Pointer[process.Self[int]]
	inside      atomic.Int32
	all         []process.Ref[int]
	rng         *rand.Rand
	over        *atomic.Bool
	twice, back *atomic.Int64
	sent        func() // called for each message

	turns, passed, moves int // plain fields: only its turns use them
	last                 *act.Scheduler
}

func (x *passer) poke() {
	if p := x.self.Load(); p != nil {
		p.Poke()
	}
}

func (x *passer) Act(p *process.Self[int]) act.Directive {
	if x.inside.Add(1) != 1 {
		x.twice.Add(1)
	}
	defer x.inside.Add(-1)
	if x.turns++; x.turns == 1 {
		x.self.Store(p)
	}
	if s := p.Scheduler(); s != x.last {
		x.last = s
		x.moves++
	}
	for {
		m, ok := p.Receive()
		switch {
		case !ok && x.rng.IntN(16) == 0:
			return act.Yield
		case !ok:
			return act.Wait
		case x.over.Load():
			x.back.Add(1)
			continue
		}
		x.passed++
		x.sent()
		if err := x.all[x.rng.IntN(len(x.all))].Send(p, m); err != nil {
			return p.Fail(err)
		}
	}
}
