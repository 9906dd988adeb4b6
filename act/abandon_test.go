package act_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/thread"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// parted has a part that its offloaded function does not need.
type parted struct {
	f     act.Action
	where *[]uint64 // the threads on which the parts were let go
}

func (p *parted) Act(t *act.Task) act.Directive { return p.f.Act(t) }

func (p *parted) Abandon() act.Action {
	*p.where = append(*p.where, thread.ID())
	return (&act.Child{Action: p.f}).Abandon()
}

func (p *parted) Close() error { panic("closed and not parted") }

func TestADropPartsTheActionFromItsFunctionAtOnce(t *testing.T) {
	rest := 0
	for name, around := range map[string]func(act.Action) act.Action{
		"by itself": func(a act.Action) act.Action { return a },
		"in Seq":    func(a act.Action) act.Action { return act.Seq(a, closing{forever, &rest}) },
		"in All":    func(a act.Action) act.Action { return act.All(act.Seq(), a) },
	} {
		t.Run(name, func(t *testing.T) {
			exec := &later{}
			s, logs := newScheduler(t, act.Config{Executor: exec})
			var parts []uint64
			closed := 0
			s.Spawn(around(&parted{closing{func(t *act.Task) act.Directive { return t.Offload(func() {}) }, &closed}, &parts}))
			_, err := s.Step(1)
			require.NoError(t, err)
			require.Equal(t, 1, requireCut(t, s.Close()).Offloads)
			require.Equal(t, []uint64{thread.ID()}, parts, "on the thread of Close, before the function returns")
			require.Zero(t, closed)
			done := make(chan bool)
			go func() { exec.run(); close(done) }()
			<-done
			require.Equal(t, 1, closed, "what belongs to the function")
			require.Len(t, parts, 1)
			require.Zero(t, logs.Len())
		})
	}
	require.Equal(t, 1, rest, "what was to come in the Seq")
}

// crossed panics when it is to be parted.
type crossed struct{ act.Func }

func (crossed) Abandon() act.Action { panic("boom") }

func TestAPanicOfAbandonIsReportedAndHarmsNothingElse(t *testing.T) {
	exec := &later{}
	s, logs := newScheduler(t, act.Config{Executor: exec})
	other := 0
	s.Spawn(crossed{func(t *act.Task) act.Directive { return t.Offload(func() {}) }})
	s.Spawn(closing{forever, &other})
	_, err := s.Step(1)
	require.NoError(t, err)
	require.Equal(t, 2, requireCut(t, s.Close()).Tasks)
	exec.run()
	require.Equal(t, 1, other)
	require.Equal(t, 1, logs.Len())
}

func TestAPanicThatIsRaisedAgainKeepsItsStack(t *testing.T) {
	p := &act.Panic{Value: "boom", Stack: []byte("where it was")}
	for name, raise := range map[string]func(){"by Raise": p.Raise, "as it is": func() { panic(p) }} {
		t.Run(name, func(t *testing.T) {
			s, logs := newScheduler(t, act.Config{})
			s.Spawn(act.Func(func(*act.Task) act.Directive { raise(); return act.Done }))
			require.NoError(t, s.Run())
			require.Equal(t, 1, logs.Len())
			fields := logs.All()[0].ContextMap()
			require.Equal(t, "panic: boom", fields["error"])
			require.Equal(t, "where it was", fields["stack"])
		})
	}
	t.Run("and as an error it has both", func(t *testing.T) {
		defer func() {
			err := recover().(error)
			require.EqualError(t, err, "panic: boom\n\nwhere it was")
			require.ErrorIs(t, err, p)
		}()
		p.Raise()
	})
}

// held is something large that is given to a scheduler.
type held [1 << 16]byte

func (h *held) TurnEnd()                       {}
func (h *held) Idle(time.Duration)             {}
func (h *held) Interrupt()                     {}
func (h *held) Policy() shutdown.Policy        { return shutdown.Policy{Time: time.Hour} }
func (h *held) Act(*act.Task) act.Directive    { return act.Wait }
func (h *held) Stop(*act.Task, shutdown.Order) {}
func (h *held) Close() error                   { return nil }

// due is called for a timer. It panics.
type due struct{ *held }

func (d due) Expire() { panic(d.held) }

var heldBy = act.NewLocal(func(*act.Scheduler) *[]*held { return &[]*held{} })

// A Group that is kept when it is closed, as by a waker, keeps nothing that its actions and services have held.
func TestAClosedGroupHoldsNothing(t *testing.T) {
	release := make(chan struct{})
	close(release)
	for _, row := range []struct {
		name string
		give func(s *act.Scheduler, h *held)
	}{
		{"a posted function", func(s *act.Scheduler, h *held) {
			s.Spawn(act.Func(func(*act.Task) act.Directive {
				_ = s.Post(func(*act.Scheduler) { runtime.KeepAlive(h) })
				return act.Done
			}))
		}},
		{"a timer", func(s *act.Scheduler, h *held) { s.CallAt(&act.Timer{}, time.Hour, due{h}) }},
		{"a timer that has panicked", func(s *act.Scheduler, h *held) { s.Install(&held{}); s.CallAt(&act.Timer{}, 0, due{h}) }},
		{"a Local", func(s *act.Scheduler, h *held) { *heldBy.Get(s) = []*held{h} }},
		{"a Local, and a function that returns later", func(s *act.Scheduler, h *held) {
			*heldBy.Get(s) = []*held{h}
			release = make(chan struct{})
			s.Spawn(act.Func(func(t *act.Task) act.Directive { return t.Offload(func() { <-release }) }))
		}},
		{"the end of a turn", func(s *act.Scheduler, h *held) { s.Internals().AtTurnEnd(h) }},
		{"an order", func(s *act.Scheduler, h *held) { s.Attach(&held{}); s.Install(&held{}); s.Shutdown(h) }},
		{"an Idler", func(s *act.Scheduler, h *held) { s.Internals().SetIdler(h) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, h := act.New(act.Config{Logger: zap.NewNop()}), &held{}
			w := weak.Make(h)
			row.give(s, h)
			_, _ = s.Step(1)
			_ = s.Close()
			select {
			case <-release:
			default:
				runtime.GC()
				require.NotNil(t, w.Value(), "the function may need it")
				close(release)
			}
			h = nil
			require.Eventually(t, func() bool {
				runtime.GC()
				return w.Value() == nil
			}, servertest.Timeout, time.Millisecond)
			runtime.KeepAlive(s)
		})
	}
}
