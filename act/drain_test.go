package act_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// drains is what Config.Draining was told.
type drains []shutdown.Drain

func (d *drains) add(report shutdown.Drain) { *d = append(*d, report) }

// take returns them as text, and forgets them.
func (d *drains) take() (all []string) {
	for _, report := range *d {
		all = append(all, report.String())
	}
	*d = nil
	return all
}

// sleeper is a task of a service that ends at a point in time, whatever it is told.
type sleeper struct {
	until time.Duration
	tick  act.Timer
	asked int // for its service
	peer  string
	still time.Duration
}

func (x *sleeper) Act(t *act.Task) act.Directive {
	if t.Scheduler().Now() >= x.until {
		return act.Done
	}
	t.WakeAt(&x.tick, x.until)
	return act.Wait
}

func (x *sleeper) String() string                 { return "sleeper" }
func (x *sleeper) Service() string                { x.asked++; return "bed" }
func (x *sleeper) Peer() string                   { return x.peer }
func (x *sleeper) Still() time.Duration           { return x.still }
func (x *sleeper) Descriptor() int                { return -1 }
func (x *sleeper) Undisturbed() bool              { return false }
func (x *sleeper) Stop(*act.Task, shutdown.Order) {}

func (x *sleeper) Describe(d *act.Description) {
	d.Internals().Peer.Name = x.peer
	d.WaitsFor("the morning")
}

func TestAnEndSaysEachSecondWhatItWaitsFor(t *testing.T) {
	var said drains
	s, _, _ := newVirtual(t, act.Config{Draining: said.add})
	s.Spawn(&sleeper{until: 2500 * time.Millisecond, peer: "a", still: time.Second})
	s.Spawn(&sleeper{until: 9 * time.Second, peer: "b", still: 5 * time.Second})
	s.Spawn(act.Func(idle))
	s.Install(&demon{act: idle})
	release := make(chan struct{})
	defer close(release)
	s.Spawn(gateway{func(t *act.Task) act.Directive { return t.Offload(func() { <-release }) }})
	s.Internals().InstallLast(&demon{act: idle})
	s.Shutdown(shutdown.Policy{Time: 4500 * time.Millisecond, Announce: 1500 * time.Millisecond, Spread: time.Second, Drop: true})
	cut := requireCut(t, s.Run())
	const left = "4 tasks, 1 demon, 1 running offload (2 × bed, github.com/daimon-go/daimon/act_test.idle, *act_test.demon, act_test.gateway)"
	const three = "3 tasks, 1 running offload (bed, github.com/daimon-go/daimon/act_test.idle, act_test.gateway)"
	const oldest = "the oldest: sleeper of bed, peer b, still for 5s, waits for the morning, a timer due in "
	require.Equal(t, []string{
		"ending for 1s, announced, for 3.5s more at most: " + left + "; 0 tasks ended since the last report; " + oldest + "8s",
		"ending for 2s, spreading, for 2.5s more at most: 4 tasks, 1 running offload (2 × bed, " +
			"github.com/daimon-go/daimon/act_test.idle, act_test.gateway); 0 tasks ended since the last report; " + oldest + "7s",
		"ending for 3s, finishing, for 1.5s more at most: " + three + "; 1 task ended since the last report; " + oldest + "6s",
		"ending for 4s, finishing, for 500ms more at most: " + three + "; 0 tasks ended since the last report; " + oldest + "5s",
	}, said.take())
	require.Equal(t, []shutdown.Unfinished{
		{Kind: "bed", Name: "sleeper", State: "waiting", Peer: "b", Waits: []string{"the morning", "a timer due in 4.5s"}, Still: 5 * time.Second},
		{Kind: "act_test.gateway", Name: "act_test.gateway", State: "offloaded", Waits: []string{"a function that runs elsewhere"},
			Still: 4500 * time.Millisecond},
		{Kind: "github.com/daimon-go/daimon/act_test.idle", Name: "github.com/daimon-go/daimon/act_test.idle", State: "waiting",
			Still: 2500 * time.Millisecond}, // it had its turn when it was told, and was seen so at 2 s
	}, cut.Left, "not the demon that ends last of all")
}

// What was broken: an order that halts makes all tasks ready, and then they were described.
func TestACutSaysWhatTasksWaitedForBeforeAHalt(t *testing.T) {
	halt := shutdown.Policy{Kind: shutdown.Halt, Drop: true}
	for name, c := range map[string]struct {
		orders []shutdown.Policy
		stays  bool // the demon, when it is told
		left   []string
	}{
		"at once": {[]shutdown.Policy{halt}, true, []string{"sleeper of bed, peer a, still for 1s, waits for the morning, a timer due in 6.5s"}},
		"both were announced": {[]shutdown.Policy{halt, {Time: time.Minute, Announce: time.Second / 2}, {Kind: shutdown.Halt, Announce: time.Second / 2, Drop: true}}, false,
			[]string{"sleeper of bed, peer a, still for 1s, waits for the morning, a timer due in 6s"}},
		"a demon that stayed": {[]shutdown.Policy{{}, halt}, true, []string{"sleeper of bed, peer a, still for 1s, waits for the morning, a timer due in 6.5s", "*act_test.demon, waiting"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := newVirtual(t, act.Config{})
			s.Spawn(&sleeper{until: 9 * time.Second, peer: "a", still: time.Second})
			d := &demon{act: idle}
			if c.stays {
				d.stop = func(*act.Task, shutdown.Order) {}
			}
			s.Install(d)
			s.Internals().InstallLast(&demon{act: idle})
			if len(c.orders) > 1 && c.orders[0] == (shutdown.Policy{}) {
				at(s, time.Second, func() { s.Shutdown(c.orders[0]) })
			}
			at(s, 2500*time.Millisecond, func() {
				for _, p := range c.orders[min(1, len(c.orders)-1):] {
					s.Shutdown(p)
				}
			})
			cut := requireCut(t, s.Run())
			require.Equal(t, 1, cut.Tasks)
			var left []string
			for _, l := range cut.Left {
				left = append(left, l.String())
			}
			require.Equal(t, c.left, left)

			s.Spawn(&sleeper{until: 9 * time.Second, peer: "later"})
			s.Shutdown(shutdown.Policy{Kind: shutdown.Suspend})
			left = nil
			for _, l := range requireCut(t, s.Run()).Left {
				left = append(left, l.Peer)
			}
			require.Equal(t, []string{"later"}, left, "nothing is kept of the order before")
		})
	}
}

// A step of a census is bounded, so that tasks have turns in between.
func TestACensusIsTakenInSteps(t *testing.T) {
	var said drains
	s, clock, _ := newVirtual(t, act.Config{Draining: said.add})
	const n = 5000
	all := make([]sleeper, n)
	for i := range all {
		all[i].until = time.Hour
		s.Spawn(&all[i])
	}
	asked := func() (sum int) {
		for i := range all {
			sum += all[i].asked
		}
		return sum
	}
	before, longest := 0, 0
	s.Spawn(act.Func(func(*act.Task) act.Directive {
		now := asked()
		longest, before = max(longest, now-before), now
		clock.Pass(time.Millisecond)
		return act.Yield
	}))
	s.Shutdown(shutdown.Policy{Time: 1900 * time.Millisecond})
	requireCut(t, s.Run())
	require.Len(t, said, 1)
	require.Equal(t, n+1, said[0].Cut.Tasks)
	require.Len(t, said[0].Cut.Left, 16)
	require.LessOrEqual(t, longest, 504)
	require.NotZero(t, longest)
}

// stepped is a Group that a test steps, on a virtual clock.
func stepped(t *testing.T, n int, draining func(shutdown.Drain)) (*act.Group, *clock) {
	c := &clock{}
	g := act.NewGroup(act.Config{Schedulers: n, Threads: act.Stepped, Clock: c, Draining: draining})
	t.Cleanup(func() { _ = g.Close() })
	return g, c
}

func TestAGroupSaysOneLineForAll(t *testing.T) {
	var said drains
	g, clock := stepped(t, 3, said.add)
	for i, s := range g.Schedulers() {
		for n := range 10 * (i + 1) {
			s.Spawn(&sleeper{until: time.Hour, peer: fmt.Sprint("peer ", n, " on ", i), still: time.Duration(n) * time.Second})
		}
	}
	step := func(which ...int) {
		for _, i := range which {
			for range 5 {
				_, err := g.Schedulers()[i].Step(100)
				require.NoError(t, err)
				clock.Pass(1)
			}
		}
	}
	g.Shutdown(shutdown.Policy{Time: time.Minute})
	step(0, 1, 2)
	clock.Pass(time.Second)
	step(0, 1)
	require.Empty(t, said, "one is missing")
	step(2)
	require.Len(t, said, 1)
	require.Equal(t, 60, said[0].Cut.Tasks)
	require.Equal(t, []shutdown.Count{{Name: "bed", N: 60}}, said[0].Cut.Kinds)
	require.Len(t, said[0].Cut.Left, 16)
	require.Equal(t, "peer 29 on 2", said[0].Cut.Left[0].Peer)
	require.Equal(t, "peer 19 on 1", said[0].Cut.Left[10].Peer)
	require.Equal(t, "peer 19 on 2", said[0].Cut.Left[11].Peer)

	// One that is held up for a while.
	clock.Pass(time.Second)
	step(0, 2)
	require.Len(t, said, 1)
	clock.Pass(time.Second)
	step(2, 0)
	require.Len(t, said, 2, "one line, without it")
	require.Equal(t, []int{1}, said[1].Silent)
	require.Equal(t, 60, said[1].Cut.Tasks, "as before")
	require.Contains(t, said[1].String(), "scheduler 1 does not answer; the oldest")
	step(1)
	require.Len(t, said, 3)
	require.Empty(t, said[2].Silent)
}

func TestAPanicOfDrainingIsReported(t *testing.T) {
	n := 0
	s, _, logs := newVirtual(t, act.Config{Draining: func(shutdown.Drain) {
		n++
		panic("draining")
	}})
	s.Spawn(&sleeper{until: 2500 * time.Millisecond})
	s.Shutdown(shutdown.Policy{})
	require.NoError(t, s.Run())
	require.Equal(t, 2, n)
	require.Equal(t, 2, logs.FilterMessage("a task failed").Len())
}

// gate is an action that waits for what its name says.
type gate struct {
	act.Func
	name string
}

func newGate(name string) *gate {
	return &gate{func(t *act.Task) act.Directive { t.Waker(); return act.Wait }, name}
}

func (d *gate) Describe(to *act.Description) { to.WaitsFor(d.name) }

func lookAway() (int, error) { return 0, nil }

// The actions of this package pass the question on, or answer it.
func TestWaitsOfActions(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 2, Executor: never{}})
	t.Cleanup(func() { _ = g.Close() })
	here, there := g.Schedulers()[0], g.Schedulers()[1]
	done := act.Func(func(*act.Task) act.Directive { return act.Done })
	for name, c := range map[string]struct {
		action act.Action
		want   []string
	}{
		"an action that says nothing": {act.Func(func(t *act.Task) act.Directive { t.Waker(); return act.Wait }), nil},
		"a child":                     {&struct{ act.Child }{act.Child{Action: newGate("a door")}}, []string{"a door"}},
		"the step of Seq that runs":   {act.Seq(done, newGate("the second"), newGate("the third")), []string{"the second"}},
		"those of All that run":       {act.All(newGate("one"), done, newGate("another")), []string{"one", "another"}},
		"those of First":              {act.First(newGate("one"), act.Seq(newGate("another"))), []string{"one", "another"}},
		"Call": {&act.Call[int]{F: lookAway},
			[]string{"a function on another goroutine: github.com/daimon-go/daimon/act_test.lookAway"}},
		"On": {act.On(there, newGate("a door")), []string{"scheduler 1: a task of *act_test.gate"}},
	} {
		t.Run(name, func(t *testing.T) {
			here.Spawn(c.action)
			_, err := here.Step(1)
			require.NoError(t, err)
			var said act.Description
			said.Of(c.action)
			require.Equal(t, c.want, said.Internals().Waits.All())
		})
	}
}

// never is an Executor whose functions do not return during the test.
type never struct{}

func (never) Execute(func()) {}

// A name without the data of clients is that of the action, and not of a part of it. A parent forwards it.
func TestTheNameInADescription(t *testing.T) {
	secret := &named{"a client"}
	for want, a := range map[string]act.Action{
		"a client": &struct{ act.Child }{act.Child{Action: secret}},
		"":         act.All(secret),
	} {
		var said act.Description
		a.(act.Describer).Describe(&said)
		require.Equal(t, want, said.Name)
		require.Equal(t, []string{"the end"}, said.Internals().Waits.All())
	}
}

// named has a name for others.
type named struct{ name string }

func (*named) Act(*act.Task) act.Directive { return act.Done }
func (n *named) Describe(d *act.Description) {
	d.Name = n.name
	d.WaitsFor("the end")
}
