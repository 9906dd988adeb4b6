package act_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/thread"
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
