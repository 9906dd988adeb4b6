package process_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/process"
	"github.com/stretchr/testify/require"
)

// A process that returns Wait and leaves messages in its mailbox has its next turn with the next message.
func TestMessagesThatATurnLeavesCauseNoTurn(t *testing.T) {
	x := newTraced(t, process.New())
	take := 0
	p := process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		x.note("[")
		for range take {
			if m, ok := p.Receive(); ok {
				x.note(strconv.Itoa(m))
			}
		}
		x.note("]")
		return act.Wait
	}), process.Options{})
	require.Equal(t, "[]", x.step())
	x.send(p, 1)
	require.Equal(t, "[]", x.step())
	x.send(p, 2, 3)
	require.Equal(t, "[]", x.step())
	take = 2
	x.send(p, 4)
	require.Equal(t, "[12]", x.step())
	x.send(p, 5, 6)
	require.Equal(t, "[34]", x.step())
	require.Empty(t, x.step())
}

func TestPoke(t *testing.T) {
	x := newTraced(t, process.New())
	var self *process.Self[int]
	again := 0
	process.Spawn(x.sys, process.Func[int](func(p *process.Self[int]) act.Directive {
		self = p
		if _, ok := p.Receive(); ok {
			x.note("m")
		} else {
			x.note("t")
		}
		if again > 0 {
			again--
			p.Poke()
		}
		return act.Wait
	}), process.Options{})
	require.Equal(t, "t", x.step())
	for range 5 {
		self.Poke()
	}
	require.Equal(t, "t", x.step(), "several before the turn are one")
	self.Poke()
	x.send(self.Ref(), 1)
	require.Equal(t, "m", x.step(), "with a message it is one turn")
	again = 3
	self.Poke()
	require.Equal(t, "tttt", x.step(), "in a turn it makes another one")
	self.Kill()
	x.step()
	self.Poke()
	require.Empty(t, x.step(), "an ended process has none")
}

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

// The future is resolved in the next turn of the scheduler.
func TestQuiescent(t *testing.T) {
	type self = process.Self[int]
	for _, row := range []struct {
		name  string
		begin func(x *traced) (end func()) // end nil: nothing delays it
	}{
		{"tasks do not count", func(x *traced) func() {
			x.busyTask()
			return nil
		}},
		{"one that waits for room sleeps", func(x *traced) func() {
			to := x.gate(process.Options{Limit: 1})
			x.sender("", to.Ref, 1)
			return nil
		}},
		{"not before the owner of a timer has ended", func(x *traced) func() {
			to := x.first(func(p *self) {
				p.After(time.Hour, 1)
				require.True(x.t, p.After(time.Hour, 1).Cancel())
			})
			return func() { to.Kill() }
		}},
		{"not before what is awaited has come", func(x *traced) func() {
			awaited := future.New[int](x.s)
			x.first(func(p *self) { process.Do(p, awaited.Await(), func(error) int { v, _ := awaited.Value(); return v }) })
			return func() { require.NoError(x.t, awaited.Resolve(7)) }
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTraced(t, process.WithBounds(1024, 16, 1))
			end := row.begin(x)
			f, g := x.sys.Quiescent(), x.sys.Quiescent()
			require.False(t, f.Resolved(), "the scheduler has had no turn")
			x.some(100)
			if end != nil {
				require.False(t, f.Resolved())
				end()
				x.some(100)
			}
			require.True(t, f.Resolved())
			require.True(t, g.Resolved())
			again := x.sys.Quiescent()
			require.False(t, again.Resolved(), "each call is about the time after it")
			x.some(100)
			require.True(t, again.Resolved())
		})
	}
}

// first spawns a process that calls f in its first turn, and receives messages.
func (x *traced) first(f func(p *process.Self[int])) process.Ref[int] {
	begun := false
	return process.Spawn(x.sys, process.Func(func(p *process.Self[int]) act.Directive {
		if !begun {
			begun = true
			f(p)
		}
		p.Receive()
		return act.Wait
	}), process.Options{})
}
