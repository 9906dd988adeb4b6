package act_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/shutdown"
)

// Random programs on three schedulers: tasks that spawn, wait, sleep, offload, call, post to siblings,
// fail and panic, and orders of all kinds at random moments. Whatever they do, each Run ends within its
// bound, each task that was spawned has one end, each action is closed once, and nothing is left.
func TestRandomProgramsAlwaysEndAndAccountForAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	goroutines := runtime.NumGoroutine()
	for range tier.Choose(10, 30, 1000) {
		w := newGroupRun(r)
		for range 1 + r.IntN(4) {
			servertest.InTime(t, func() { w.run(t) })
		}
		servertest.InTime(t, func() { w.end(t) })
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, servertest.Timeout, time.Millisecond)
}

// groupRun is one Group and what has happened on it.
type groupRun struct {
	g              *act.Group
	r              *rand.Rand // of the test's goroutine only
	spawned, ended atomic.Int64
	closed         atomic.Int64
	away           atomic.Int64 // offloaded functions
	budget         atomic.Int64 // of tasks still to be spawned
}

func newGroupRun(r *rand.Rand) *groupRun {
	w := &groupRun{r: r}
	w.g = act.NewGroup(act.Config{
		Schedulers:   3,
		TurnsPerPass: []int{0, 1, 7}[r.IntN(3)],
		Inbox:        []int{0, 1, 16}[r.IntN(3)],
		Offloads:     1 + r.IntN(4),
		Logger:       zap.NewNop(),
		Shutdown:     shutdown.Policy{Turns: r.IntN(20), Time: 5 * time.Millisecond, Drop: r.IntN(2) == 0},
		Trace: &act.Trace{
			Spawned: func(*act.Task) { w.spawned.Add(1) },
			Ended:   func(*act.Task, error) { w.ended.Add(1) },
		},
	})
	return w
}

// run runs the Group once, with newcomers, until it ends by itself or its context does.
func (w *groupRun) run(t *testing.T) {
	w.budget.Add(200)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(w.r.IntN(4000))*time.Microsecond)
	defer cancel()
	ordered := make(chan struct{})
	go func(r *rand.Rand) {
		defer close(ordered)
		for r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(2000)) * time.Microsecond)
			w.g.Shutdown(anyPolicy(r))
		}
	}(w.fork())
	err := w.g.Run(ctx, func(s *act.Scheduler) error {
		for range 10 {
			s.Spawn(w.newcomer(w.fork()))
		}
		s.Install(w.newcomer(w.fork()))
		s.Attach(w.newcomer(w.fork()))
		return nil
	})
	<-ordered
	var cut *shutdown.Cut
	require.True(t, err == nil || errors.As(err, &cut), "%v", err)
}

// end closes the Group and settles the account.
func (w *groupRun) end(t *testing.T) {
	var cut *shutdown.Cut
	err := w.g.Close()
	require.True(t, err == nil || errors.As(err, &cut), "%v", err)
	require.Equal(t, w.spawned.Load(), w.ended.Load(), "each task has one end")
	require.Eventually(t, func() bool { return w.away.Load() == 0 && w.closed.Load() == w.spawned.Load() },
		servertest.Timeout, 100*time.Microsecond, "each action is closed once: %v of %v", &w.closed, &w.spawned)
}

func (w *groupRun) fork() *rand.Rand { return rand.New(rand.NewPCG(w.r.Uint64(), w.r.Uint64())) }

func anyPolicy(r *rand.Rand) shutdown.Policy {
	return shutdown.Policy{
		Kind:  shutdown.Kind(r.IntN(4)),
		Turns: r.IntN(10),
		Time:  time.Duration(r.IntN(3)) * time.Millisecond,
		Drop:  r.IntN(3) == 0,
	}
}

// newcomer is an action without a plan.
type newcomer struct {
	w     *groupRun
	r     *rand.Rand
	nap   act.Timer
	child act.Action
	told  bool
}

func (w *groupRun) newcomer(r *rand.Rand) *newcomer { return &newcomer{w: w, r: r} }

func (n *newcomer) Close() error {
	n.w.closed.Add(1)
	return nil
}

func (n *newcomer) Stop(*act.Task, shutdown.Order) {
	n.told = n.r.IntN(4) > 0
	if n.r.IntN(30) == 0 {
		panic("in Stop")
	}
}

func (n *newcomer) Act(t *act.Task) act.Directive {
	if n.child != nil {
		if d := n.child.Act(t); !d.Finished() {
			return d
		}
		n.child = nil
	}
	if n.told && n.r.IntN(4) == 0 {
		return act.Done
	}
	return n.move(t)
}

// move is one of the things that a task may do in its turn.
func (n *newcomer) move(t *act.Task) act.Directive {
	s := t.Scheduler()
	sibling := s.Group().Schedulers()[n.r.IntN(3)]
	switch n.r.IntN(16) {
	case 0:
		return act.Done
	case 1:
		return t.Fail(errors.New("as it happens"))
	case 2:
		if n.r.IntN(4) == 0 {
			panic("as it happens")
		}
	case 3, 4:
		t.WakeAfter(&n.nap, time.Duration(n.r.IntN(1000))*time.Microsecond)
		return act.Wait
	case 5, 6:
		return t.Offload(n.off())
	case 7:
		f := n.off()
		call := &act.Call[int]{F: func() (int, error) { f(); return 0, nil }}
		n.child = act.First(call, sleep(time.Duration(n.r.IntN(300))*time.Microsecond))
		return n.child.Act(t)
	case 8, 9:
		if n.w.budget.Add(-1) > 0 {
			s.Spawn(n.w.newcomer(n.fork()))
		}
	case 10:
		if r := n.fork(); n.w.budget.Add(-1) > 0 {
			sibling.Post(func(s *act.Scheduler) { s.Spawn(n.w.newcomer(r)) })
		}
	case 11:
		wake := t.Waker().Remote()
		if sibling.Post(func(*act.Scheduler) { wake() }) == nil {
			return act.Wait
		}
	case 12:
		t.Own(&closer{func() error { return nil }})
		s.Internals().AtTurnEnd(turnEnd(func() {}))
	case 13:
		if n.r.IntN(20) == 0 {
			sibling.Shutdown(anyPolicy(n.r))
		}
	}
	return act.Yield
}

// off is a function that takes its time, and sometimes does not return.
func (n *newcomer) off() func() {
	fate, nap := n.r.IntN(20), time.Duration(n.r.IntN(200))*time.Microsecond
	return func() {
		n.w.away.Add(1)
		defer n.w.away.Add(-1)
		time.Sleep(nap)
		switch fate {
		case 0:
			panic("off the thread")
		case 1:
			runtime.Goexit()
		}
	}
}

func (n *newcomer) fork() *rand.Rand { return rand.New(rand.NewPCG(n.r.Uint64(), n.r.Uint64())) }
