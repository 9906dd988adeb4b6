package process_test

import (
	"fmt"
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
		{"a negative Limit", func() {
			process.Spawn(newTraced(t, process.New()).sys, idler, process.Options{Limit: -2})
		}, "process: a negative Limit"},
		{"no action", func() {
			process.Spawn[int](newTraced(t, process.New()).sys, nil, process.Options{})
		}, "process: no action to make a process of"},
		{"Spawn before Setup", func() { spawnOn(process.New()) }, "process: Spawn before Setup"},
		{"a link with no process", func() {
			process.Link(spawnOn(newTraced(t, process.New()).sys), nil, true)
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

func TestAGroupHasOneSystemAndASystemOneGroup(t *testing.T) {
	sys, other := process.New(), process.New()
	g, h := act.NewGroup(act.Config{Schedulers: 2}), act.NewGroup(act.Config{Schedulers: 1})
	defer func() {
		require.NoError(t, g.Close())
		require.NoError(t, h.Close())
	}()
	require.ErrorContains(t, g.Run(t.Context(), sys.Setup, other.Setup), "the Group has a System already")
	require.ErrorContains(t, h.Run(t.Context(), sys.Setup), "the System is in another Group already")
	require.NoError(t, g.Run(t.Context(), sys.Setup, sys.Setup), "twice is once")
}

// Processes that are spawned in a set-up function have their first turns when all set-up functions have returned on all
// schedulers.
func TestNoTurnBeforeSetUpIsComplete(t *testing.T) {
	sys := process.New()
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
	require.EqualValues(t, 200, sys.Counted().Ended)
}

// Each Group has a System of its own. A process of the other one gets no thread by a hand-off.
func TestProcessesOfTwoSystemsSendToEachOther(t *testing.T) {
	one, two := newTraced(t, process.New()), newTraced(t, process.New())
	there := two.handler(func(p *process.Self[int], _ int) { two.note(fmt.Sprint(p.System() == two.sys)) })
	here := one.handler(func(p *process.Self[int], m int) { require.NoError(t, there.Send(p, m)) })
	two.step()
	one.send(here, 1)
	one.step()
	require.Empty(t, two.noted())
	require.Equal(t, "true", two.step())
}
