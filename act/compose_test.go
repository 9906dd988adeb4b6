package act_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// child is an action that answers what it is told to, notes what happens to it, and answers its final verdict again.
type child struct {
	name    string
	answers []act.Directive
	err     error
	h       *history
	closed  bool
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
	c.closed = true
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

func TestSeqDoesOneAfterTheOtherInAsFewTurnsAsPossible(t *testing.T) {
	var h history
	s, _ := newScheduler(t, act.Config{})
	list := []act.Action{
		&child{name: "A", answers: []act.Directive{act.Yield, act.Done}, h: &h},
		&child{name: "B", answers: []act.Directive{act.Done}, h: &h},
		&child{name: "C", answers: []act.Directive{act.Yield, act.Yield, act.Done}, h: &h},
	}
	s.Spawn(act.All(act.Seq(list...), act.Func(func(*act.Task) act.Directive { return h.note("|", act.Done) })))
	require.NoError(t, s.Run())
	require.Equal(t, "A|A-AB-BCCC-C", h.String())
	for _, a := range list {
		require.NotNil(t, a, "the caller's list is the caller's")
	}
}

func TestAllWaitsForAllAndJoinsTheirFailures(t *testing.T) {
	var h history
	one, two := errors.New("one"), errors.New("two")
	a := act.All(
		&child{name: "A", answers: []act.Directive{act.Failed}, err: one, h: &h},
		&child{name: "B", answers: []act.Directive{act.Yield, act.Yield, act.Done}, h: &h},
		&child{name: "C", answers: []act.Directive{act.Yield, act.Failed}, err: two, h: &h},
	)
	var ended error
	s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(_ *act.Task, err error) { ended = err }}})
	s.Spawn(a)
	require.NoError(t, s.Run())
	require.Equal(t, "A-ABCBC-CB-B", h.String(), "a finished action is closed and not called again")
	require.ErrorIs(t, ended, one)
	require.ErrorIs(t, ended, two)
}

func TestFirstClosesItsLosers(t *testing.T) {
	for name, winner := range map[string]*child{
		"done":   {answers: []act.Directive{act.Yield, act.Done}},
		"failed": {answers: []act.Directive{act.Yield, act.Failed}, err: errors.New("but first")},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			winner.name, winner.h = "B", &h
			var ended error
			s, _ := newScheduler(t, act.Config{Trace: &act.Trace{Ended: func(_ *act.Task, err error) { ended = err }}})
			s.Spawn(act.First(
				&child{name: "A", answers: []act.Directive{act.Wait}, h: &h},
				winner,
				&child{name: "C", answers: []act.Directive{act.Yield}, h: &h},
			))
			require.NoError(t, s.Run())
			require.Equal(t, "ABCAB-B-C-A", h.String(), "C is not called once B has finished")
			require.Equal(t, winner.err, ended)
		})
	}
}

func TestAFinalVerdictIsAnsweredAgainWithoutEffect(t *testing.T) {
	refusal := errors.New("refused")
	for name, make := range map[string]func(...act.Action) act.Action{"Seq": act.Seq, "All": act.All, "First": act.First} {
		for _, final := range []act.Directive{act.Done, act.Failed} {
			t.Run(name+" "+final.String(), func(t *testing.T) {
				var h history
				a := make(&child{name: "A", answers: []act.Directive{final}, err: refusal, h: &h})
				var again []act.Directive
				var errs []error
				s, _ := newScheduler(t, act.Config{})
				s.Spawn(act.Func(func(t *act.Task) act.Directive {
					again = append(again, a.Act(t))
					errs = append(errs, t.Err())
					if len(again) == 3 {
						return act.Done
					}
					return act.Yield
				}))
				require.NoError(t, s.Run())
				require.Equal(t, []act.Directive{final, final, final}, again)
				require.Equal(t, "A-A", h.String(), "called and closed once")
				if final == act.Failed {
					require.Equal(t, []error{refusal, refusal, refusal}, errs, "also in later turns")
				}
			})
		}
	}
}

func TestAnOffloadAmongSeveralMustBeAlone(t *testing.T) {
	const alone = "panic: act: an action of All or First answered Async beside others that are not finished: use Call, or offload alone"
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

func TestCloseIsForwardedOnceToWhatHasNotFinished(t *testing.T) {
	var h history
	waits := func(name string) *child { return &child{name: name, answers: []act.Directive{act.Wait}, h: &h} }
	done := func(name string) *child { return &child{name: name, answers: []act.Directive{act.Done}, h: &h} }
	s, _ := newScheduler(t, act.Config{})
	s.Spawn(act.All(act.Seq(done("A"), waits("B"), done("C")), done("D"), act.First(waits("E"), waits("F"))))
	_, err := s.Step(1)
	require.NoError(t, err)
	require.Equal(t, "A-ABD-DEF", h.take())
	s.Shutdown(plain(haltAndDrop))
	requireCut(t, s.Run())
	require.Equal(t, "!B!E!F-F-E-C-B", h.take(), "the last first")
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
		s.Shutdown(plain(shutdown.Policy{Kind: shutdown.Suspending, Drop: true}))
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
