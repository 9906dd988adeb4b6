package act_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// child is an action that returns what it is told to, notes what happens to it, and repeats its final Directive.
type child struct {
	name    string
	answers []act.Directive
	err     error
	h       *history
}

func (c *child) Act(t *act.Task) act.Directive {
	c.h.WriteString(c.name)
	d := c.answers[0]
	if len(c.answers) > 1 {
		c.answers = c.answers[1:]
	}
	switch d {
	case act.Wait:
		t.Waker()
	case act.Async:
		return t.Offload(func() {})
	case act.Failed:
		return t.Fail(c.err)
	}
	return d
}

func (c *child) Stop(*act.Task, shutdown.Order) { c.h.WriteString("!" + c.name) }

func (c *child) Close() error {
	c.h.WriteString("-" + c.name)
	return nil
}

// turn returns what a answers in one turn, and the failure.
func turn(t *testing.T, a act.Action) (d act.Directive, err error) {
	t.Helper()
	s, _ := newScheduler(t, act.Config{})
	s.Spawn(act.Func(func(t *act.Task) act.Directive {
		d = a.Act(t)
		err = t.Err()
		return act.Done
	}))
	require.NoError(t, s.Run())
	return d, err
}

// A turn of an action is its letter, - is in front of what is closed, ! of what is told, and | is a turn of another task. What has
// not finished then is dropped.
func TestSchedulesOfCombinations(t *testing.T) {
	type player func(name string, answers ...act.Directive) act.Action
	for name, c := range map[string]struct {
		combine func(play player) act.Action
		want    string
		failure string // each action fails with its name
	}{
		"Seq does one after the other, in as few turns as possible": {func(play player) act.Action {
			return act.Seq(play("A", act.Yield, act.Done), play("B", act.Done), play("C", act.Yield, act.Yield, act.Done))
		}, "A|A-AB-BCCC-C", ""},
		"All waits for all, and joins their failures": {func(play player) act.Action {
			return act.All(play("A", act.Failed), play("B", act.Yield, act.Yield, act.Done), play("C", act.Yield, act.Failed))
		}, "A-ABC|BC-CB-B", "A\nC"},
		"First closes its losers": {func(play player) act.Action {
			return act.First(play("A", act.Wait), play("B", act.Yield, act.Done), play("C", act.Yield))
		}, "ABC|AB-B-C-A", ""},
		"First fails with the first": {func(play player) act.Action {
			return act.First(play("A", act.Wait), play("B", act.Yield, act.Failed), play("C", act.Yield))
		}, "ABC|AB-B-C-A", "B"},
		"what has not finished is told, and closed, the last first": {func(play player) act.Action {
			return act.All(act.Seq(play("A", act.Done), play("B", act.Wait), play("C")), play("D", act.Done),
				act.First(play("E", act.Wait), play("F", act.Wait)))
		}, "A-ABD-DEF|!B!E!F-F-E-C-B", act.ErrDropped.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			var ended []error
			s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(_ *act.Task, err error) { ended = append(ended, err) }}})
			s.Spawn(c.combine(func(name string, answers ...act.Directive) act.Action {
				return &child{name: name, answers: answers, err: errors.New(name), h: &h}
			}))
			s.Spawn(h.script("|", 1, act.Yield))
			_, err := s.Step(100)
			require.NoError(t, err)
			if !s.Finished() {
				s.Shutdown(haltAndDrop)
				requireCut(t, s.Run())
			}
			require.Equal(t, c.want, h.String())
			require.Len(t, ended, 2)
			if last := ended[1]; c.failure == "" {
				require.NoError(t, last)
			} else {
				require.EqualError(t, last, c.failure)
			}
		})
	}
}

func TestAFinalVerdictIsAnsweredAgainWithoutEffect(t *testing.T) {
	refusal := errors.New("refused")
	for name, make := range map[string]func(...act.Action) act.Action{
		"Seq": act.Seq, "All": act.All, "First": act.First,
		"Child": func(a ...act.Action) act.Action { return &act.Child{Action: a[0]} },
	} {
		for _, final := range []act.Directive{act.Done, act.Failed} {
			t.Run(name+" "+final.String(), func(t *testing.T) {
				var h history
				list := []act.Action{&child{name: "A", answers: []act.Directive{final}, err: refusal, h: &h}}
				a := make(list...)
				for range 3 {
					d, err := turn(t, a)
					require.Equal(t, final, d)
					require.Equal(t, final == act.Failed, err == refusal, "also in later turns")
				}
				a.(act.Demon).Stop(nil, shutdown.Policy{Kind: shutdown.Unbounded})
				require.NoError(t, a.(io.Closer).Close())
				require.Equal(t, "A-A", h.String(), "called and closed once")
				require.NotNil(t, list[0], "the caller's list is the caller's")
			})
		}
	}
}

func TestAnOffloadAmongSeveralMustBeAlone(t *testing.T) {
	const alone = "panic: act: an action of All or First returned Async while others are not finished: use Call, or offload alone"
	for name, c := range map[string]struct {
		answers []act.Directive
		ends    string
	}{
		"it is the only one":     {[]act.Directive{act.Async}, ""},
		"the others finished":    {[]act.Directive{act.Done, act.Async}, ""},
		"the others have failed": {[]act.Directive{act.Failed, act.Async}, "refused"},
		"one waits":              {[]act.Directive{act.Wait, act.Async}, alone},
		"one comes behind it":    {[]act.Directive{act.Async, act.Done}, alone},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			var ended error
			s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(_ *act.Task, err error) { ended = err }}})
			var children []act.Action
			for _, answer := range c.answers {
				children = append(children, &child{answers: []act.Directive{answer, act.Done}, err: errors.New("refused"), h: &h})
			}
			s.Spawn(act.All(children...))
			require.NoError(t, s.Run())
			if c.ends == "" {
				require.NoError(t, ended)
			} else {
				require.EqualError(t, ended, c.ends)
			}
		})
	}
}

func TestAChildWhoseCloseFailsOrPanicsDoesNotKeepTheOthersOpen(t *testing.T) {
	for name, make := range map[string]func(...act.Action) act.Action{"Seq": act.Seq, "All": act.All, "First": act.First} {
		var h history
		bad := func(close func() error) act.Action {
			return struct {
				act.Func
				*closer
			}{idle, &closer{close}}
		}
		s, logs := newScheduler(t, act.Config{})
		s.Spawn(make(
			&child{name: "A", answers: []act.Directive{act.Wait}, h: &h},
			bad(func() error { return errors.New("not closed") }),
			bad(func() error { panic("not closed either") }),
			&child{name: "B", answers: []act.Directive{act.Wait}, h: &h},
		))
		_, err := s.Step(1)
		require.NoError(t, err)
		h.Reset()
		s.Shutdown(shutdown.Policy{Kind: shutdown.Suspend, Drop: true})
		requireCut(t, s.Run())
		require.Equal(t, "-B-A", h.String(), name)
		require.Len(t, messages(logs), 1)
	}
}

// A random tree against a slow obvious twin: each leaf knows how many turns it takes.
func TestRandomTreesEndAsTheirDefinitionSays(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var closed, leaves int
		tree, want := randomTree(r, 4, &closed, &leaves)
		var got error
		ended := time.Duration(-1)
		s, clock, _ := newVirtual(t, act.Config{Trace: &act.Trace{}})
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			d := tree.Act(t)
			if d == act.Failed {
				got = t.Err()
				d = act.Done
			}
			if d == act.Done {
				ended = clock.Monotonic()
			}
			return d
		}))
		require.NoError(t, s.Run())
		require.Equal(t, want.at, ended, "%+v", want)
		require.Equal(t, want.fails, got != nil)
		if c, ok := tree.(interface{ Close() error }); ok {
			require.NoError(t, c.Close())
		}
		require.Equal(t, leaves, closed, "each leaf is closed once, whether it lost, failed, or never began")
	}
}

// outcome is when a tree ends on a virtual clock, and how.
type outcome struct {
	at    time.Duration
	fails bool
}

// leaf ends some time after its first turn.
type leaf struct {
	act.Func
	closed *int
	gone   bool
}

func (l *leaf) Close() error {
	if !l.gone {
		*l.closed++
	}
	l.gone = true
	return nil
}

func randomTree(r *rand.Rand, depth int, closed, leaves *int) (act.Action, outcome) {
	if depth == 0 || r.IntN(4) == 0 {
		*leaves++
		o := outcome{time.Duration(1 + r.Int64N(1<<40)), r.IntN(4) == 0} // no two end at once
		nap := sleep(o.at)
		return &leaf{Func: func(t *act.Task) act.Directive {
			d := nap(t)
			if d == act.Done && o.fails {
				return t.Fail(errors.New("as foreseen"))
			}
			return d
		}, closed: closed}, o
	}
	kind := r.IntN(3)
	var children []act.Action
	var whole outcome
	settled := false
	for range 1 + r.IntN(3) {
		c, o := randomTree(r, depth-1, closed, leaves)
		children = append(children, c)
		switch {
		case kind == 0 && !settled: // one after the other, until one fails
			whole.at += o.at
			whole.fails, settled = o.fails, o.fails
		case kind == 1: // all side by side
			whole = outcome{max(whole.at, o.at), whole.fails || o.fails}
		case kind == 2 && (len(children) == 1 || o.at < whole.at): // the first
			whole = o
		}
	}
	return []func(...act.Action) act.Action{act.Seq, act.All, act.First}[kind](children...), whole
}

func TestNilActionsPanicWhereTheyAreGiven(t *testing.T) {
	some := act.Func(func(*act.Task) act.Directive { return act.Done })
	require.PanicsWithValue(t, "act.Seq of a nil action", func() { act.Seq(some, nil) })
	require.PanicsWithValue(t, "act.All of a nil action", func() { act.All(some, nil) })
	require.PanicsWithValue(t, "act.First of a nil action", func() { act.First(nil) })
	s, _ := newScheduler(t, act.Config{})
	require.PanicsWithValue(t, "act.On of a nil action", func() { act.On(s, nil) })
}

// around is what embedding a Child looks like: it notes its turns, orders and end before it forwards them.
type around struct {
	act.Child
	h    *history
	make func() act.Action // in the first turn; nil: the Child is there
	then act.Action        // goes on with that one when the first is Done
}

func (a *around) Act(t *act.Task) act.Directive {
	a.h.WriteString("(")
	if a.make != nil && a.Action == nil {
		a.Action = a.make()
	}
	d := a.Child.Act(t)
	if d == act.Done && a.then != nil {
		a.Child, a.then = act.Child{Action: a.then}, nil
		return a.Child.Act(t)
	}
	return d
}

func (a *around) Stop(t *act.Task, o shutdown.Order) {
	a.h.WriteString("!")
	a.Child.Stop(t, o)
}

func (a *around) Close() error {
	a.h.WriteString("-")
	return a.Child.Close()
}

func TestAChildForwardsEverything(t *testing.T) {
	var h history
	a := &child{name: "A", answers: []act.Directive{act.Yield, act.Wait, act.Done}, h: &h}
	s, _ := newScheduler(t, act.Config{})
	x := &around{Child: act.Child{Action: a}, h: &h}
	s.Spawn(x)
	_, err := s.Step(2)
	require.NoError(t, err)
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	require.NoError(t, s.Run())
	require.Equal(t, "(A(A!!A(A--A", h.String())
	require.Equal(t, "*act_test.child", act.Name(&act.Child{Action: a}))
	require.Equal(t, "nothing", act.Name(&act.Child{}))
}

func TestAChildThatWasClosedFailsAndOneThatIsNoneIsDone(t *testing.T) {
	var h history
	x := &act.Child{Action: &child{name: "A", answers: []act.Directive{act.Wait}, h: &h}}
	require.NoError(t, x.Close())
	d, err := turn(t, x)
	require.Equal(t, act.Failed, d)
	require.ErrorIs(t, err, act.ErrDropped)
	x.Stop(nil, shutdown.Policy{Kind: shutdown.Unbounded})
	require.Nil(t, x.Abandon())
	require.Equal(t, "-A", h.String())

	none := &act.Child{}
	d, _ = turn(t, none)
	require.Equal(t, act.Done, d)
	require.Nil(t, none.Abandon())
	require.NoError(t, none.Close())
}

func TestAChildThatIsSetInATurnHearsOfAnOrderThatCameBefore(t *testing.T) {
	for name, c := range map[string]struct {
		orders int
		want   string
	}{"no order": {0, "(A(AB--B"}, "one order": {1, "!(!AA(A!BB--B"}} {
		t.Run(name, func(t *testing.T) {
			var h history
			s, _ := newScheduler(t, act.Config{})
			s.Spawn(&around{h: &h, make: func() act.Action {
				return &child{name: "A", answers: []act.Directive{act.Yield, act.Done}, h: &h}
			}, then: &child{name: "B", answers: []act.Directive{act.Done}, h: &h}})
			for range c.orders {
				s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
			}
			require.NoError(t, s.Run())
			require.Equal(t, c.want, h.String())
		})
	}
}
