package process_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/process"
	"github.com/daimon-go/daimon/shutdown"
)

// repeated is a System in a Group that runs several times.
type repeated struct {
	t   testing.TB
	sys *process.System
	g   *act.Group
}

func newRepeated(t testing.TB, schedulers int) *repeated {
	x := &repeated{t, process.New(process.Config{}), act.NewGroup(act.Config{Schedulers: schedulers})}
	t.Cleanup(func() { _ = x.g.Close() })
	return x
}

// run calls Run, after an order if terms is not nil, and calls setup on the first scheduler.
func (x *repeated) run(terms *shutdown.Policy, setup ...func()) error {
	x.t.Helper()
	if terms != nil {
		x.g.Shutdown(shutdown.Now{Terms: *terms})
	}
	return runToEnd(x.t, x.g, x.sys.Setup, func(s *act.Scheduler) error {
		if s.Index() == 0 {
			for _, f := range setup {
				f()
			}
		}
		return nil
	})
}

func (x *repeated) spawn(o process.Options) process.Ref[job] { return process.Spawn(x.sys, runJobs, o) }

// closing spawns a process that counts its Close.
func (x *repeated) closing(closed *atomic.Int64, o process.Options) process.Ref[job] {
	return process.Spawn(x.sys, &closingProcess[job]{runJobs, func() error { closed.Add(1); return nil }}, o)
}

// stopRecorder is an Action that records the orders that it is told.
type stopRecorder struct {
	process.Action[job]
	mu   sync.Mutex
	told []string
	then func(p *jobSelf, o shutdown.Order) // if not nil
}

func newStopRecorder() *stopRecorder { return &stopRecorder{Action: runJobs} }

func (s *stopRecorder) Stop(p *jobSelf, o shutdown.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := "?"
	if o, ok := o.(namedOrder); ok {
		name = o.name
	}
	s.told = append(s.told, name)
	if s.then != nil {
		s.then(p, o)
	}
}

func (s *stopRecorder) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.told...)
}

func TestASleepingProcessKeepsRunFromReturning(t *testing.T) {
	x := newStepped(t, 2)
	ref := x.spawn(process.Options{})
	finished := func() (all bool) {
		all = true
		for _, s := range x.g.Schedulers() {
			all = all && s.Finished()
		}
		return all
	}
	x.all()
	require.False(t, finished(), "a goroutine may send to it")
	x.do(ref, func(p *jobSelf) { process.Spawn(p, runJobs, process.Options{Name: "child"}); p.Exit() })
	require.False(t, finished(), "or to its child")
	x.do(x.spawn(process.Options{}), exits)
	require.False(t, finished())
}

func TestRunReturnsWhenTheLastProcessHasEnded(t *testing.T) {
	for _, schedulers := range []int{1, 2, 3} {
		x := newRepeated(t, schedulers)
		left := atomic.Int64{}
		left.Store(100)
		require.NoError(t, x.run(nil, func() {
			for range 100 {
				ref := x.spawn(process.Options{})
				go func() { _ = ref.Send(x.sys, func(p *jobSelf) { left.Add(-1); p.Exit() }) }()
			}
		}))
		require.Zero(t, left.Load())
		require.Zero(t, x.sys.Stats().Alive)
		require.NoError(t, x.run(nil), "and another one has nothing to do")
	}
}

// Some processes have messages, others sleep.
func TestTheTermsOfAnOrder(t *testing.T) {
	const busy, messages, sleeping = 10, 40, 5
	for _, row := range []struct {
		name  string
		terms shutdown.Policy
		done  bool // all messages are received
		left  int64
	}{
		{"as long as it takes", shutdown.Unbounded, true, busy + sleeping},
		{"turns", shutdown.Policy{Turns: 5}, true, busy + sleeping},
		{"time", shutdown.Policy{Time: servertest.Timeout}, true, busy + sleeping},
		{"time, then drop", shutdown.Policy{Time: servertest.Timeout, Drop: true}, true, 0},
		{"the zero policy", shutdown.Policy{}, true, 0},
		{"halt", shutdown.Halt, false, busy + sleeping},
		{"halt, and drop", shutdown.Policy{Kind: shutdown.Halting, Drop: true}, false, 0},
		{"suspend", shutdown.Suspend, false, busy + sleeping},
		{"suspend, and drop", shutdown.Policy{Kind: shutdown.Suspending, Drop: true}, false, 0},
	} {
		for _, schedulers := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d", row.name, schedulers), func(t *testing.T) {
				x := newRepeated(t, schedulers)
				var handled, closed atomic.Int64
				all := []process.Ref[job]{}
				err := x.run(&row.terms, func() {
					for i := range busy + sleeping {
						ref := x.closing(&closed, process.Options{})
						all = append(all, ref)
						for range messages {
							if i < busy {
								require.NoError(t, ref.Send(x.sys, func(p *jobSelf) { handled.Add(1) }))
							}
						}
					}
				})
				want := int64(0)
				if row.done {
					require.NoError(t, err)
					want = busy * messages
				} else {
					var cut *shutdown.Cut
					require.ErrorAs(t, err, &cut)
					require.Equal(t, row.terms.Drop, cut.Dropped)
				}
				require.Equal(t, want, handled.Load())
				require.Equal(t, row.left, x.sys.Stats().Alive)
				require.Equal(t, busy+sleeping-row.left, closed.Load())
				for _, ref := range all {
					if row.left == 0 {
						n, err := process.Ended(ref).Value()
						require.NoError(t, err)
						require.Equal(t, process.Notice{Of: ref, Reason: process.Stopped}, n)
					}
				}

				// a later Run continues with the processes that are left
				require.NoError(t, x.run(nil, func() {
					for _, ref := range all {
						_ = ref.Send(x.sys, exits)
					}
				}))
				if row.left > 0 {
					require.EqualValues(t, busy*messages, handled.Load())
				}
				require.Zero(t, x.sys.Stats().Alive)
				require.EqualValues(t, busy+sleeping, closed.Load())
			})
		}
	}
}

func TestTheBoundInTimeEndsABusyProcess(t *testing.T) {
	for _, drop := range []bool{false, true} {
		x := newRepeated(t, 2)
		var turns atomic.Int64
		var over, closed atomic.Bool
		err := x.run(nil, func() {
			process.Spawn(x.sys, &closingProcess[job]{process.Func[job](func(p *jobSelf) act.Directive {
				switch turns.Add(1); {
				case over.Load():
					return act.Done
				case turns.Load() == 1:
					x.g.Shutdown(shutdown.Now{Terms: shutdown.Policy{Time: 5 * time.Millisecond, Drop: drop}})
				}
				return act.Yield
			}), func() error { closed.Store(true); return nil }}, process.Options{Name: "restless"})
		})
		var cut *shutdown.Cut
		require.ErrorAs(t, err, &cut)
		require.Equal(t, drop, cut.Dropped)
		require.Contains(t, cut.Error(), "restless")
		require.Equal(t, drop, closed.Load())
		require.Equal(t, !drop, x.sys.Stats().Alive == 1)
		before := turns.Load()
		over.Store(true)
		require.NoError(t, x.run(nil))
		require.Equal(t, !drop, turns.Load() > before)
		require.True(t, closed.Load())
	}
}

// Bounds in turns do not count the turns of processes.
func TestAnOrderedEndWaitsForSpawnedProcesses(t *testing.T) {
	x := newRepeated(t, 2)
	var generations atomic.Int64
	var beget func(p *jobSelf)
	beget = func(p *jobSelf) {
		if generations.Add(1) < 1000 {
			require.NoError(t, process.Spawn(p, runJobs, process.Options{}).Send(p, beget))
		}
	}
	require.NoError(t, x.run(&shutdown.Unbounded, func() {
		require.NoError(t, x.spawn(process.Options{}).Send(x.sys, beget))
	}))
	require.EqualValues(t, 1000, generations.Load())
	require.EqualValues(t, 1000, x.sys.Stats().Alive)
}

func TestTimersDoNotDelayAnOrderedEnd(t *testing.T) {
	x := newRepeated(t, 2)
	expired := false
	require.NoError(t, x.run(&shutdown.Unbounded, func() {
		require.NoError(t, x.spawn(process.Options{}).Send(x.sys, func(p *jobSelf) {
			p.After(time.Hour, func(*jobSelf) { expired = true })
		}))
	}))
	require.False(t, expired)
	require.EqualValues(t, 1, x.sys.Stats().Alive)
}

func TestOperationsDelayAnOrderedEnd(t *testing.T) {
	x := newRepeated(t, 2)
	var arrived atomic.Int64
	f := future.New[int](x.g.Schedulers()[0])
	as := func(int, error) job { return func(*jobSelf) { arrived.Add(1) } }
	require.NoError(t, x.run(&shutdown.Unbounded, func() {
		require.NoError(t, x.spawn(process.Options{}).Send(x.sys, func(p *jobSelf) {
			process.Await(p, f, as)
			process.Offload(p, func() (int, error) { time.Sleep(2 * time.Millisecond); return 0, f.Resolve(1) }, as)
			process.Do(p, &listener.Sleep{For: time.Millisecond}, func(err error) job { return as(0, err) })
		}))
	}))
	require.EqualValues(t, 3, arrived.Load())
}

// In the next Run timers expire, operations finish, and questions are answered.
func TestASuspendedRunContinues(t *testing.T) {
	for _, terms := range []shutdown.Policy{shutdown.Suspend, shutdown.Halt} {
		x := newRepeated(t, 2)
		var arrived []string
		var ref process.Ref[job]
		note := func(what string) job {
			return func(p *jobSelf) {
				if arrived = append(arrived, what); len(arrived) == 3 {
					p.Exit()
				}
			}
		}
		set := func(p *jobSelf) {
			asked := x.spawn(process.Options{Name: "asked"})
			process.Link(p, asked, true)
			p.After(10*time.Millisecond, note("timer"))
			process.Do(p, &listener.Sleep{For: 10 * time.Millisecond}, func(error) job { return note("operation") })
			process.Request(p, asked, questionFor(func(p *jobSelf, r textReply) {
				p.After(10*time.Millisecond, func(p *jobSelf) { r.Send(p, "answer") })
			}), 0, func(v string, _ error) job { return note(v) })
			x.g.Shutdown(namedOrder{"o", terms})
		}
		var cut *shutdown.Cut
		require.ErrorAs(t, x.run(nil, func() {
			ref = x.spawn(process.Options{Name: "owner"})
			require.NoError(t, ref.Send(x.sys, set))
		}), &cut)
		require.Empty(t, arrived)
		require.NoError(t, x.run(nil))
		require.ElementsMatch(t, []string{"timer", "operation", "answer"}, arrived)
		require.Zero(t, x.sys.Stats().Alive)
	}
}

// If the process has a turn before it is dropped itself, it is told ErrLost.
func TestOperationsThatAnOrderDrops(t *testing.T) {
	x := newRepeated(t, 2)
	never := future.New[int](x.g.Schedulers()[0])
	err := x.run(&shutdown.Policy{Time: 5 * time.Millisecond, Drop: true}, func() {
		require.NoError(t, x.spawn(process.Options{}).Send(x.sys, func(p *jobSelf) {
			process.Await(p, never, func(_ int, err error) job {
				return func(*jobSelf) {
					if !errors.Is(err, process.ErrLost) {
						t.Error(err)
					}
				}
			})
		}))
	})
	var cut *shutdown.Cut
	require.ErrorAs(t, err, &cut)
	require.Equal(t, 1, cut.Tasks)
	require.Zero(t, x.sys.Stats().Alive)
	require.NoError(t, x.run(nil))
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
	x.g.Shutdown(namedOrder{"o", shutdown.Unbounded})
	x.all()
	require.Equal(t, []string{"queued told", "queued's message", "asleep told"}, log)
	require.True(t, asleep.Kill())
}

// The message arrives during the turn, and is received in it.
func TestStopIsCalledIfAMessageArrivesWithTheOrder(t *testing.T) {
	x, s := newStepped(t, 2), newStopRecorder()
	var ref process.Ref[job]
	x.on(1, x.spawn(process.Options{}), func(p *jobSelf) { ref = process.Spawn(p, s, process.Options{}) })
	x.all()
	received := false
	x.on(0, ref, func(p *jobSelf) {
		x.g.Shutdown(namedOrder{"o", shutdown.Unbounded})
		_, err := x.g.Schedulers()[1].Step(100) // the order takes effect on scheduler 1 during this turn
		require.NoError(t, err)
		require.NoError(t, ref.Send(x.sys, func(*jobSelf) { received = true }))
	})
	x.all()
	require.True(t, received)
	require.Equal(t, []string{"o"}, s.heard())
}

func TestStopIsCalledForStricterOrdersOnly(t *testing.T) {
	x := newStepped(t, 2)
	hold := make([]*stopRecorder, 2) // one on each scheduler
	never := future.New[int](x.g.Schedulers()[0])
	for i := range hold {
		hold[i] = newStopRecorder()
		ref := process.Spawn(x.sys, hold[i], process.Options{})
		x.do(ref, func(p *jobSelf) { process.Await(p, never, func(int, error) job { return exits }) }) // keeps the order in force
	}
	hour := func(n int) shutdown.Policy { return shutdown.Policy{Time: time.Duration(n) * time.Hour} }
	for _, o := range []namedOrder{
		{"a", shutdown.Unbounded}, {"a again", shutdown.Unbounded}, {"b", hour(9)}, {"later", hour(10)}, {"c", hour(8)},
	} {
		x.g.Shutdown(o)
		x.all()
	}
	for _, s := range hold {
		require.Equal(t, []string{"a", "b", "c"}, s.heard())
	}
	require.NoError(t, never.Resolve(1))
	x.all()
}

func TestStopComesBeforeTheFirstTurnUnderAnOrder(t *testing.T) {
	for _, on := range []int{0, 1} {
		x := newStepped(t, 2)
		child := newStopRecorder()
		never := future.New[int](x.g.Schedulers()[0])
		parent := x.spawn(process.Options{})
		x.do(parent, func(p *jobSelf) { process.Await(p, never, func(int, error) job { return exits }) })
		x.g.Shutdown(namedOrder{"o", shutdown.Unbounded})
		x.all()
		first := ""
		x.on(on, parent, func(p *jobSelf) {
			require.NoError(t, process.Spawn(p, child, process.Options{}).Send(x.sys, func(*jobSelf) { first = fmt.Sprint(child.heard()) }))
		})
		x.all()
		require.Equal(t, "[o]", first)
		require.Equal(t, []string{"o"}, child.heard())
		require.NoError(t, never.Resolve(1))
		x.all()
	}
}

// Processes that are spawned or have a turn when one scheduler has obeyed the order and the other has not are told
// once.
func TestStopIsCalledOnceAlthoughSchedulersObeyOneByOne(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			x := newStepped(t, 2)
			never := future.New[int](x.g.Schedulers()[0])
			x.do(x.spawn(process.Options{}), func(p *jobSelf) { process.Await(p, never, func(int, error) job { return exits }) })
			all := []*stopRecorder{}
			spawn := func() {
				for range 4 { // a goroutine's Spawn takes each scheduler in turn
					s := newStopRecorder()
					all = append(all, s)
					process.Spawn(x.sys, s, process.Options{})
				}
			}
			spawn()
			x.all()
			spawn()
			x.g.Shutdown(namedOrder{"o", shutdown.Unbounded})
			spawn()
			x.only(first)
			spawn()
			x.sys.Quiescent() // wakes all schedulers, which look into all queues
			x.only(first)
			x.only(1 - first)
			spawn()
			x.all()
			for i, s := range all {
				require.Equal(t, []string{"o"}, s.heard(), i)
			}
			require.NoError(t, never.Resolve(1))
			x.all()
		})
	}
}

func TestStopIsNotCalledForAPastOrder(t *testing.T) {
	for _, first := range []int{0, 1} {
		x := newStepped(t, 2)
		x.spawn(process.Options{})
		x.g.Shutdown(namedOrder{"spent", shutdown.Unbounded})
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
			require.Empty(t, s.heard())
		}
	}
}

func TestAStopperMayEndOrSend(t *testing.T) {
	for name, row := range map[string]struct {
		then func(p *jobSelf, o shutdown.Order)
		want process.Reason
	}{
		"Exit":  {func(p *jobSelf, _ shutdown.Order) { p.Exit() }, process.Normal},
		"Fail":  {func(p *jobSelf, _ shutdown.Order) { p.Fail(errFailed) }, process.Failed},
		"panic": {func(*jobSelf, shutdown.Order) { panic("burst") }, process.Panicked},
	} {
		t.Run(name, func(t *testing.T) {
			x := newStepped(t, 1)
			heard := ""
			friend := x.spawn(process.Options{})
			s := newStopRecorder()
			s.then = func(p *jobSelf, o shutdown.Order) {
				require.NoError(t, friend.Send(p, func(*jobSelf) { heard = "farewell" }))
				row.then(p, o)
			}
			ref := process.Spawn(x.sys, s, process.Options{})
			h := x.watcher(ref)
			require.NoError(t, ref.Send(x.sys, func(*jobSelf) { t.Error("it has ended before") }))
			x.g.Shutdown(namedOrder{"o", shutdown.Unbounded})
			x.all()
			require.Equal(t, "farewell", heard)
			require.Equal(t, []process.Reason{row.want}, h.reasons())
		})
	}
}

// A process that waits for room has no turn, so it is not told before there is room. It does not delay an ordered end.
func TestAnOrderWhileAProcessWaitsForRoom(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		x, s := newStepped(t, 2), newStopRecorder()
		never := future.New[int](x.g.Schedulers()[0])
		if lasting {
			x.do(x.spawn(process.Options{}), func(p *jobSelf) { process.Await(p, never, func(int, error) job { return exits }) })
		}
		g, went := x.gate(process.Options{Limit: 1}), 0
		require.NoError(t, g.Send(x.sys, func(*jobSelf) { went++ }))
		waits := process.Spawn(x.sys, s, process.Options{})
		x.do(waits, func(p *jobSelf) { require.NoError(t, g.Send(p, func(*jobSelf) { went++ })) })
		require.NoError(t, waits.Send(x.sys, func(p *jobSelf) { went++ }))
		x.g.Shutdown(namedOrder{"o", shutdown.Unbounded})
		x.all()
		require.Equal(t, lasting, x.underOrder())
		require.Empty(t, s.heard())
		require.Zero(t, went)
		g.let(x, 2)
		require.Equal(t, 3, went)
		if lasting {
			require.Equal(t, []string{"o"}, s.heard())
		} else {
			require.Empty(t, s.heard(), "the order is no longer in force")
		}
		require.NoError(t, never.Resolve(1))
		x.all()
		require.False(t, x.underOrder())
	}
}

func TestCloseEndsAll(t *testing.T) {
	for _, schedulers := range []int{1, 2} {
		x := newRepeated(t, schedulers)
		var closed atomic.Int64
		all := []process.Ref[job]{}
		ends := []*future.Future[process.Notice]{}
		var result error
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun := make(chan bool)
		called := make(chan error, 2)
		full := process.Ref[job]{}
		require.NoError(t, x.run(&shutdown.Unbounded, func() {
			for i := range 20 {
				ref := x.closing(&closed, process.Options{Limit: 1})
				all = append(all, ref)
				ends = append(ends, process.Ended(ref))
				if i > 0 {
					process.Link(ref, all[i-1], true)
				}
				require.NoError(t, ref.Send(x.sys, func(p *jobSelf) {
					p.After(time.Hour, exits)
					process.Request(p, all[0], questionFor(func(*jobSelf, textReply) {}), time.Hour, func(string, error) job { return exits })
				}))
			}
			full = process.Spawn(x.sys, process.Func[job](func(*jobSelf) act.Directive { return act.Wait }), process.Options{Limit: 1})
			require.NoError(t, full.Send(x.sys, exits))
			go func() {
				close(begun)
				_, err := process.Call(ctx, all[0], questionFor(func(*jobSelf, textReply) {}))
				called <- err
			}()
			go func() { called <- full.Deliver(ctx, exits) }()
		}))
		servertest.Receive(t, begun)
		result = x.g.Close()
		require.ErrorIs(t, servertest.Receive(t, called), process.ErrDead)
		require.ErrorIs(t, servertest.Receive(t, called), process.ErrDead)
		var cut *shutdown.Cut
		require.True(t, result == nil || errors.As(result, &cut))
		require.EqualValues(t, 20, closed.Load())
		for i, f := range ends {
			n, err := f.Value()
			require.NoError(t, err)
			require.Equal(t, process.Notice{Of: all[i], Reason: process.Stopped}, n)
		}
		require.Zero(t, x.sys.Stats().Alive)

		require.NoError(t, x.g.Close(), "once more")
		require.ErrorIs(t, all[0].Send(x.sys, exits), process.ErrDead)
		require.ErrorIs(t, all[0].Deliver(ctx, exits), process.ErrDead)
		require.False(t, all[0].Kill())
		_, err := process.Call(ctx, all[0], questionFor(func(*jobSelf, textReply) {}))
		require.ErrorIs(t, err, process.ErrDead)
		require.True(t, process.Ended(all[0]).Resolved())
		late, err := process.Ended(x.closing(&closed, process.Options{})).Value()
		require.NoError(t, err, "a goroutine may spawn in a closed System")
		require.Equal(t, process.Stopped, late.Reason)
		require.EqualValues(t, 21, closed.Load())
		require.Zero(t, x.sys.Stats().Alive)
		require.True(t, x.sys.Quiescent().Resolved())
		require.ErrorIs(t, x.g.Run(ctx, x.sys.Setup), act.ErrClosed)
	}
}

// A Group that is closed without a Run, or whose set-up has failed, ends all processes that were spawned.
func TestCloseWithoutARun(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		x := newStepped(t, 2)
		ended := process.Ended(x.spawn(process.Options{}))
		_ = x.g.Close()
		require.True(t, ended.Resolved())
	})
	for _, failing := range []int{0, 1} {
		t.Run(fmt.Sprintf("a set-up that fails on %d", failing), func(t *testing.T) {
			x := newRepeated(t, 2)
			var ended *future.Future[process.Notice]
			require.ErrorIs(t, runToEnd(t, x.g, x.sys.Setup, func(s *act.Scheduler) error {
				if s.Index() == 0 {
					ended = process.Ended(x.spawn(process.Options{}))
				}
				if s.Index() == failing {
					return errFailed
				}
				return nil
			}), errFailed)
			_ = x.g.Close()
			require.True(t, ended.Resolved())
			require.True(t, process.Ended(x.spawn(process.Options{})).Resolved())
		})
	}
}

// An order for one scheduler ends that one; the processes continue on the others.
func TestAnOrderForOneScheduler(t *testing.T) {
	x := newRepeated(t, 2)
	handled := atomic.Int64{}
	servertest.InTime(t, func() {
		require.NoError(t, x.g.Run(t.Context(), x.sys.Setup, func(s *act.Scheduler) error {
			if s.Index() > 0 {
				return nil
			}
			for range 10 {
				ref := x.spawn(process.Options{})
				var again func(p *jobSelf)
				n := 0
				again = func(p *jobSelf) {
					handled.Add(1)
					if n++; n == 50 {
						p.Exit()
						return
					}
					_ = ref.Send(p, again)
				}
				require.NoError(t, ref.Send(x.sys, again))
			}
			s.Shutdown(shutdown.Now{Terms: shutdown.Unbounded})
			return nil
		}))
	})
	require.EqualValues(t, 500, handled.Load())
}

// Two orders are obeyed in one sequence on one scheduler, and in the other on the other. Each process is told of the
// orders of one scheduler, each once.
func TestOrdersThatCross(t *testing.T) {
	x := newStepped(t, 2)
	var recorders []*stopRecorder
	for i, s := range x.g.Schedulers() {
		taker := newStopRecorder()
		recorders = append(recorders, taker)
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			process.Spawn(t, taker, process.Options{})
			return act.Done
		}))
		x.only(i) // registers the process here
		s.Hold(1)
		t.Cleanup(func() { s.Hold(-1) })
	}
	lax, strict := namedOrder{"lax", shutdown.Unbounded}, namedOrder{"strict", shutdown.Policy{Time: time.Hour}}
	one, two := x.g.Schedulers()[0], x.g.Schedulers()[1]
	one.Shutdown(strict)
	two.Shutdown(lax)
	x.all()
	one.Shutdown(lax)
	two.Shutdown(strict)
	x.all()
	x.g.Shutdown(namedOrder{"stricter", shutdown.Policy{Time: time.Minute}})
	x.all()
	require.Equal(t, []string{"strict", "stricter"}, recorders[0].heard())
	require.Equal(t, []string{"lax", "strict", "stricter"}, recorders[1].heard())
}

// Step continues after an order, as the next Run does.
func TestStepContinuesAfterAnOrder(t *testing.T) {
	for name, terms := range map[string]shutdown.Policy{"suspend": shutdown.Suspend, "halt": shutdown.Halt, "drain": shutdown.Unbounded} {
		t.Run(name, func(t *testing.T) {
			x := newStepped(t, 2)
			ref := x.spawn(process.Options{})
			x.all()
			x.g.Shutdown(namedOrder{name, terms})
			for i := range 4 {
				_, _ = x.g.Schedulers()[i%2].Step(1000) // sleeping processes are cut
			}
			ran := false
			require.NoError(t, ref.Send(x.sys, func(*jobSelf) { ran = true }))
			quiescent := x.sys.Quiescent()
			x.all()
			require.True(t, ran)
			require.True(t, quiescent.Resolved())
			x.do(ref, exits)
			for _, s := range x.g.Schedulers() {
				require.True(t, s.Finished())
			}
		})
	}
}

func TestSetupOnOneSchedulerOnly(t *testing.T) {
	for _, only := range []int{0, 1} {
		sys := process.New(process.Config{})
		g := act.NewGroup(act.Config{Schedulers: 2})
		var cancelled, dropped process.Ref[job]
		var quiescent *future.Future[struct{}]
		require.NoError(t, runToEnd(t, g, func(s *act.Scheduler) error {
			if s.Index() != only {
				return nil
			}
			require.NoError(t, sys.Setup(s))
			dropped = process.Spawn(sys, runJobs, process.Options{})
			cancelled = process.Spawn(sys, runJobs, process.Options{})
			return cancelled.Send(sys, func(p *jobSelf) {
				x := process.Do(p, act.Func(func(*act.Task) act.Directive { return act.Wait }), func(error) job { return exits })
				quiescent = sys.Quiescent()
				time.AfterFunc(time.Millisecond, func() {
					x.Cancel()
					for !quiescent.Resolved() {
						time.Sleep(time.Millisecond)
					}
					g.Shutdown(shutdown.Now{})
				})
			})
		}))
		require.Zero(t, sys.Stats().Alive, "an order that drops what is left ends sleeping processes")
		require.ErrorIs(t, dropped.Send(sys, exits), process.ErrDead)
		require.NoError(t, g.Close())
	}
}

// A task has called runtime.Goexit on one scheduler.
func TestAnOrderedEndDoesNotWaitForALostScheduler(t *testing.T) {
	x := newRepeated(t, 2)
	require.ErrorIs(t, runToEnd(t, x.g, x.sys.Setup, func(s *act.Scheduler) error {
		if s.Index() > 0 {
			return nil
		}
		x.spawn(process.Options{})
		s.Spawn(act.Func(func(*act.Task) act.Directive {
			runtime.Goexit()
			return act.Done
		}))
		time.AfterFunc(10*time.Millisecond, func() { x.g.Shutdown(drain) })
		return nil
	}), act.ErrGoexit)
}

func TestTheCutOfAnOrderThatHaltsNamesProcessesThatSleep(t *testing.T) {
	x := newStepped(t, 1)
	x.spawn(process.Options{Name: "sleeper"})
	x.all()
	x.g.Shutdown(shutdown.Now{Terms: shutdown.Halt})
	_, err := x.g.Schedulers()[0].Step(1000)
	var cut *shutdown.Cut
	require.ErrorAs(t, err, &cut)
	require.Equal(t, 1, cut.Processes)
	require.Contains(t, cut.Error(), "sleeper")
}
