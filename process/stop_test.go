package process_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// stopRecorder is an Action that records the orders that it is told.
type stopRecorder struct {
	process.Action[job]
	told []string
	then func(p *jobSelf, o shutdown.Order) // if not nil
}

func newStopRecorder() *stopRecorder { return &stopRecorder{Action: runJobs} }

func (s *stopRecorder) Stop(p *jobSelf, o shutdown.Order) {
	name := "?"
	if o, ok := o.(namedOrder); ok {
		name = o.name
	}
	s.told = append(s.told, name)
	if s.then != nil {
		s.then(p, o)
	}
}

// Some processes have messages, others sleep. A later Run continues with those that are left.
func TestTheTermsOfAnOrder(t *testing.T) {
	const busy, messages, sleeping = 10, 40, 5
	for _, row := range []struct {
		name  string
		terms shutdown.Policy
		done  bool // all messages are received
		left  int
	}{
		{"as long as it takes", shutdown.Policy{Kind: shutdown.Unbounded}, true, busy + sleeping},
		{"turns, which are not counted", shutdown.Policy{Turns: 5}, true, busy + sleeping},
		{"time, then drop", shutdown.Policy{Time: servertest.Timeout, Drop: true}, true, 0},
		{"the zero policy", shutdown.Policy{}, true, 0},
		{"halt", shutdown.Policy{Kind: shutdown.Halt}, false, busy + sleeping},
		{"suspend", shutdown.Policy{Kind: shutdown.Suspend}, false, busy + sleeping},
		{"suspend, and drop", shutdown.Policy{Kind: shutdown.Suspend, Drop: true}, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			sys, g := process.New(), act.NewGroup(act.Config{Schedulers: 2})
			var handled, closed atomic.Int64
			var all []process.Ref[job]
			spawn := func() {
				closes := &closingProcess[job]{runJobs, func() error { closed.Add(1); return nil }}
				all = append(all, process.Spawn(sys, closes, process.Options{Name: "clerk"}))
			}
			run := func(setUp func()) error {
				return runToEnd(t, g, sys.Setup, func(s *act.Scheduler) error {
					if s.Index() == 0 {
						setUp()
					}
					return nil
				})
			}
			g.Shutdown(row.terms)
			err := run(func() {
				for i := range busy + sleeping {
					spawn()
					for range messages {
						if i < busy {
							require.NoError(t, all[i].Send(sys, func(*jobSelf) { handled.Add(1) }))
						}
					}
				}
			})
			if row.done {
				require.NoError(t, err)
				require.EqualValues(t, busy*messages, handled.Load())
			} else {
				var cut *shutdown.Cut
				require.ErrorAs(t, err, &cut)
				require.Equal(t, row.terms.Drop, cut.Dropped)
				require.Equal(t, busy+sleeping, cut.Processes)
				require.Contains(t, cut.Error(), "clerk")
				require.Zero(t, handled.Load())
			}
			require.Equal(t, row.left, sys.Alive())
			require.EqualValues(t, busy+sleeping-row.left, closed.Load())
			require.NoError(t, run(func() {
				for _, ref := range all {
					_ = ref.Send(sys, exits)
				}
			}))
			if row.left > 0 {
				require.EqualValues(t, busy*messages, handled.Load())
			}
			require.Zero(t, sys.Alive())
			require.EqualValues(t, busy+sleeping, closed.Load())
			require.NoError(t, g.Close())
		})
	}
}

func TestTheBoundInTimeEndsABusyProcess(t *testing.T) {
	for _, drop := range []bool{false, true} {
		x := newStepped(t, 2)
		turns, closed, over := 0, 0, false
		process.Spawn(x.sys, &closingProcess[job]{process.Func[job](func(*jobSelf) act.Directive {
			if turns++; over {
				return act.Done
			}
			return act.Yield
		}), func() error { closed++; return nil }}, process.Options{Name: "restless"})
		x.g.Shutdown(shutdown.Policy{Time: time.Second, Drop: drop})
		step := func() (cuts error) {
			for _, s := range x.g.Schedulers() {
				_, err := s.Step(10)
				cuts = errors.Join(cuts, err)
			}
			return cuts
		}
		require.NoError(t, step())
		x.clock.Pass(time.Second)
		require.ErrorContains(t, errors.Join(step(), step(), step(), step()), "restless")
		require.Equal(t, drop, closed == 1)
		before := turns
		over = true
		require.NoError(t, errors.Join(step(), step()))
		require.Equal(t, !drop, turns > before, "it continues if it was not dropped")
		require.Equal(t, 1, closed)
	}
}

func TestStopComesBeforeTheNextTurn(t *testing.T) {
	x := newStepped(t, 1)
	log := []string{}
	spawn := func(name string) process.Ref[job] {
		s := newStopRecorder()
		s.then = func(*jobSelf, shutdown.Order) { log = append(log, name+" told") }
		return process.Spawn(x.sys, s, process.Options{Name: name})
	}
	asleep, queued := spawn("asleep"), spawn("queued")
	x.all()
	require.NoError(t, queued.Send(x.sys, func(*jobSelf) { log = append(log, "queued's message") }))
	x.g.Shutdown(namedOrder{"o", shutdown.Policy{Kind: shutdown.Unbounded}})
	x.all()
	require.Equal(t, []string{"queued told", "queued's message", "asleep told"}, log)
	require.True(t, asleep.Kill())
}

func TestStopIsCalledForStricterOrdersOnly(t *testing.T) {
	x := newStepped(t, 2)
	hold := make([]*stopRecorder, 2) // one on each scheduler
	never := future.New[int](x.g.Schedulers()[0])
	for i := range hold {
		hold[i] = newStopRecorder()
		ref := process.Spawn(x.sys, hold[i], process.Options{})
		x.do(ref, func(p *jobSelf) { process.Do(p, never.Await(), func(error) job { return exits }) }) // keeps the order in force
	}
	hour := func(n int) shutdown.Policy { return shutdown.Policy{Time: time.Duration(n) * time.Hour} }
	for _, o := range []namedOrder{
		{"a", shutdown.Policy{Kind: shutdown.Unbounded}}, {"a again", shutdown.Policy{Kind: shutdown.Unbounded}}, {"b", hour(9)}, {"later", hour(10)}, {"c", hour(8)},
	} {
		x.g.Shutdown(o)
		x.all()
	}
	for _, s := range hold {
		require.Equal(t, []string{"a", "b", "c"}, s.told)
	}
	require.NoError(t, never.Resolve(1))
	x.all()
}

func TestStopIsNotCalledForAPastOrder(t *testing.T) {
	for _, first := range []int{0, 1} {
		x := newStepped(t, 2)
		x.spawn(process.Options{})
		x.g.Shutdown(namedOrder{"spent", shutdown.Policy{Kind: shutdown.Unbounded}})
		x.all()
		all := []*stopRecorder{}
		for range 4 {
			s := newStopRecorder()
			all = append(all, s)
			process.Spawn(x.sys, s, process.Options{})
		}
		x.sys.Quiescent() // which has all of them look into all queues
		x.only(first)
		x.all()
		for _, s := range all {
			require.Empty(t, s.told)
		}
	}
}

func TestAStopperMayEndAndSend(t *testing.T) {
	for want, ends := range map[process.Reason]job{process.Normal: exits, process.Failed: fails, process.Panicked: panics} {
		x := newStepped(t, 1)
		heard := ""
		friend := x.spawn(process.Options{})
		s := newStopRecorder()
		s.then = func(p *jobSelf, _ shutdown.Order) {
			require.NoError(t, friend.Send(p, func(*jobSelf) { heard = "farewell" }))
			ends(p)
		}
		ref := process.Spawn(x.sys, s, process.Options{})
		h := x.watcher(ref)
		require.NoError(t, ref.Send(x.sys, func(*jobSelf) { t.Error("it has ended before") }))
		x.g.Shutdown(namedOrder{"o", shutdown.Policy{Kind: shutdown.Unbounded}})
		x.all()
		require.Equal(t, "farewell", heard)
		require.Equal(t, []process.Reason{want}, h.reasons())
	}
}

// Even processes that have had no turn, and processes that are spawned later.
func TestCloseEndsAll(t *testing.T) {
	x := newStepped(t, 2)
	closed := 0
	var all []process.Ref[job]
	spawn := func() {
		all = append(all, process.Spawn(x.sys, &closingProcess[job]{runJobs, func() error { closed++; return nil }}, process.Options{}))
	}
	spawn()
	x.do(all[0], func(p *jobSelf) { p.After(time.Hour, exits) })
	full := x.gate(process.Options{Limit: 1})
	require.NoError(t, full.Send(x.sys, exits))
	waits := make(chan error, 1)
	go func() { waits <- full.Deliver(context.Background(), exits) }()
	require.Eventually(t, func() bool { return full.Waiters() == 1 }, servertest.Timeout, time.Millisecond)
	spawn()
	_ = x.g.Close()
	require.ErrorIs(t, servertest.Receive(t, waits), process.ErrDead)
	spawn() // a goroutine may spawn in a closed System
	require.Equal(t, len(all), closed)
	for _, ref := range all {
		n, err := process.Ended(ref).Value()
		require.NoError(t, err)
		require.Equal(t, process.Notice{Of: ref, Reason: process.Stopped}, n)
		require.ErrorIs(t, ref.Send(x.sys, exits), process.ErrDead)
		require.False(t, ref.Kill())
	}
	require.Zero(t, x.sys.Alive())
	require.True(t, x.sys.Quiescent().Resolved())
	require.NoError(t, x.g.Close(), "once more")
}

// Timers expire, operations finish, and questions are answered when Step continues after an order, as in the next Run.
func TestStepContinuesAfterAnOrder(t *testing.T) {
	for name, terms := range map[string]shutdown.Policy{"suspend": shutdown.Policy{Kind: shutdown.Suspend}, "halt": shutdown.Policy{Kind: shutdown.Halt}, "drain": shutdown.Policy{Kind: shutdown.Unbounded}} {
		t.Run(name, func(t *testing.T) {
			x, got := newStepped(t, 2), []string{}
			note := func(text string) job { return func(*jobSelf) { got = append(got, text) } }
			asked := x.spawn(process.Options{})
			owner := x.spawn(process.Options{})
			x.do(owner, func(p *jobSelf) {
				p.After(time.Second, note("timer"))
				process.Do(p, &listener.Sleep{For: time.Second}, func(error) job { return note("operation") })
				ask := &process.Ask[job, string]{To: asked, Message: questionFor(func(p *jobSelf, r textReply) {
					p.After(time.Second, func(*jobSelf) { r.Send("answer") })
				})}
				process.Do(p, ask, func(error) job { return note(ask.Value) })
			})
			x.g.Shutdown(namedOrder{name, terms})
			for i := range 4 {
				_, _ = x.g.Schedulers()[i%2].Step(1000) // sleeping processes are cut
			}
			require.Empty(t, got)
			quiescent := x.sys.Quiescent()
			x.later(time.Second)
			require.ElementsMatch(t, []string{"timer", "operation", "answer"}, got)
			require.True(t, quiescent.Resolved())
			x.do(owner, exits)
			x.do(asked, exits)
			for _, s := range x.g.Schedulers() {
				require.True(t, s.Finished())
			}
		})
	}
}

func TestWhatDelaysAnOrderedEnd(t *testing.T) {
	for _, row := range []struct {
		name   string
		begin  func(p *jobSelf)
		delays bool
	}{
		{"a process that sleeps", func(*jobSelf) {}, false},
		{"a process that waits for room", func(p *jobSelf) {
			full := process.Spawn(p, process.Func(func(*jobSelf) act.Directive { return act.Wait }), process.Options{Limit: 1})
			_, _ = full.Send(p, exits), full.Send(p, exits)
		}, false},
		{"a timer", func(p *jobSelf) { p.After(time.Second, func(*jobSelf) {}) }, false},
		{"an operation", func(p *jobSelf) {
			process.Do(p, &listener.Sleep{For: time.Second}, func(error) job { return func(*jobSelf) {} })
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newStepped(t, 2)
			x.do(x.spawn(process.Options{}), row.begin)
			x.g.Shutdown(drain)
			x.all()
			require.Equal(t, row.delays, x.underOrder())
			x.later(time.Second)
			require.False(t, x.underOrder())
		})
	}
}

// It has its set-up on one scheduler of two, which is the only one that its processes use.
func TestSetupOnOneSchedulerOnly(t *testing.T) {
	for _, only := range []int{0, 1} {
		sys := process.New()
		g := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped})
		require.NoError(t, sys.Setup(g.Schedulers()[only]))
		step := func() {
			for _, s := range g.Schedulers() {
				_, _ = s.Step(1000)
			}
		}
		ref, ran := process.Spawn(sys, runJobs, process.Options{}), false
		require.NoError(t, ref.Send(sys, func(*jobSelf) { ran = true }))
		quiescent := sys.Quiescent()
		step()
		require.True(t, ran)
		require.True(t, quiescent.Resolved())
		g.Shutdown(shutdown.Policy{Kind: shutdown.Suspend, Drop: true})
		for range 4 {
			step()
		}
		require.ErrorIs(t, ref.Send(sys, exits), process.ErrDead, "the order has dropped it")
		require.NoError(t, g.Close())
	}
}

func TestTheCutOfAnOrderThatHaltsNamesProcessesThatSleep(t *testing.T) {
	x := newStepped(t, 1)
	x.spawn(process.Options{Name: "sleeper"})
	x.all()
	x.g.Shutdown(shutdown.Policy{Kind: shutdown.Halt})
	_, err := x.g.Schedulers()[0].Step(1000)
	require.ErrorContains(t, err, "sleeper")
}
