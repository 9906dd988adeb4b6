package process_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/process"
)

var idler = process.Handler[int](func(*process.Self[int], int) {})

func TestMisusePanics(t *testing.T) {
	spawnOn := func(sys *process.System) process.AnyRef { return process.Spawn(sys, idler, process.Options{}) }
	for _, row := range []struct {
		name string
		do   func()
		want string
	}{
		{"an unknown Limit", func() { process.New(process.Config{Limit: -2}) }, "process: a negative Limit"},
		{"a negative Messages", func() { process.New(process.Config{Messages: -1}) }, "process: a Config with a negative bound"},
		{"a negative Batch", func() { process.New(process.Config{Batch: -1}) }, "process: a Config with a negative bound"},
		{"a Limit of one process", func() {
			process.Spawn(newTraced(t, process.Config{}).sys, idler, process.Options{Limit: -2})
		}, "process: a negative Limit"},
		{"no action", func() {
			process.Spawn[int](newTraced(t, process.Config{}).sys, nil, process.Options{})
		}, "process: no action to make a process of"},
		{"Spawn before Setup", func() { spawnOn(process.New(process.Config{})) }, "process: Spawn before Setup"},
		{"an unknown Overflow", func() {
			process.Spawn(newTraced(t, process.Config{}).sys, idler, process.Options{Overflow: 3})
		}, "process: Overflow(3) means nothing"},
		{"a link with no process", func() {
			process.Link(spawnOn(newTraced(t, process.Config{}).sys), nil, true)
		}, "process: Link without a process: the zero Ref is nobody"},
		{"Spawn by a task of a Group without a System", func() {
			s := act.New(act.Config{})
			defer func() { _ = s.Close() }()
			var raised any
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				func() {
					defer func() { raised = recover() }()
					process.Spawn(t, idler, process.Options{})
				}()
				return act.Done
			}))
			_ = s.Run()
			panic(raised)
		}, "process: the Group has no System: call its Setup in a set-up function"},
	} {
		t.Run(row.name, func(t *testing.T) { require.PanicsWithValue(t, row.want, row.do) })
	}
}

func TestTheSmallestAndTheLargestBounds(t *testing.T) {
	const largest = math.MaxInt
	for _, row := range []struct {
		name string
		cfg  process.Config
		own  int
	}{
		{"none given", process.Config{}, 0},
		{"one", process.Config{Limit: 1, Messages: 1, Batch: 1}, 1},
		{"no Limit", process.Config{Limit: process.Unbounded}, process.Unbounded},
		{"the largest Limit", process.Config{Limit: largest}, 0},
		{"the largest Limit of its own", process.Config{}, largest},
		{"the largest number of messages", process.Config{Messages: largest}, 0},
		{"the largest Batch", process.Config{Batch: largest}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, row.cfg)
			to := process.Spawn(x.sys, process.Handler[int](func(*process.Self[int], int) { x.note("a") }), process.Options{Limit: row.own})
			for range 3 {
				x.send(to, 1)
				require.Equal(t, "a", x.some(10))
			}
		})
	}
}

func TestAGroupHasOneSystemAndASystemOneGroup(t *testing.T) {
	sys, other := process.New(process.Config{}), process.New(process.Config{})
	g, h := act.NewGroup(act.Config{Schedulers: 2}), act.NewGroup(act.Config{Schedulers: 1})
	defer func() {
		require.NoError(t, g.Close())
		require.NoError(t, h.Close())
	}()
	require.ErrorIs(t, g.Run(t.Context(), sys.Setup, other.Setup), process.ErrSecondSystem)
	require.ErrorIs(t, h.Run(t.Context(), sys.Setup), process.ErrSecondGroup)
	require.NoError(t, g.Run(t.Context(), sys.Setup, sys.Setup), "twice is once")
}

// Processes that are spawned in a set-up function have their first turns when all set-up functions have returned on all
// schedulers.
func TestNoTurnBeforeSetUpIsComplete(t *testing.T) {
	sys := process.New(process.Config{})
	g := act.NewGroup(act.Config{Schedulers: 2})
	defer func() { require.NoError(t, g.Close()) }()
	var complete atomic.Bool
	var early atomic.Int64
	require.NoError(t, g.Run(t.Context(), sys.Setup, func(s *act.Scheduler) error {
		for range 100 {
			process.Spawn(sys, process.Func[int](func(*process.Self[int]) act.Directive {
				if !complete.Load() {
					early.Add(1)
				}
				return act.Done
			}), process.Options{})
		}
		time.Sleep(time.Millisecond)
		complete.Store(s.Index() == 1)
		return nil
	}))
	require.Zero(t, early.Load())
	require.EqualValues(t, 200, sys.Stats().Ended)
}

// Each Group has a System of its own.
func TestProcessesOfTwoSystemsSendToEachOther(t *testing.T) {
	const rounds = 2000
	var refs [2]process.Ref[int]
	var both [2]running
	for i := range both {
		both[i] = start(t, 2, process.Config{}, func(sys *process.System) {
			refs[i] = process.Spawn(sys, process.Handler[int](func(p *process.Self[int], m int) {
				if p.System() != sys {
					t.Error("it runs elsewhere")
				}
				_ = refs[1-i].Send(p, m-1)
				if m <= 1 {
					p.Exit()
				}
			}), process.Options{})
		})
	}
	require.NoError(t, refs[0].Send(both[0].sys, rounds))
	for _, r := range both {
		r.end()
	}
}
