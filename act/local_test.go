package act_test

import (
	"errors"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
)

// engine is a value of a Local that wants to be closed.
type engine struct {
	of   int
	name string
	h    *history
}

func (e *engine) Close() error { e.h.WriteString(e.name); return nil }

func TestALocalHasOneValueForEachSchedulerMadeOnFirstUse(t *testing.T) {
	made := 0
	l := act.NewLocal(func(s *act.Scheduler) *engine { made++; return &engine{of: s.Index(), h: &history{}} })
	g, _ := newGroup(t, act.Config{Schedulers: 2})
	require.Zero(t, made)
	a, b := g.Schedulers()[0], g.Schedulers()[1]
	one := l.Get(a)
	require.Equal(t, 1, made)
	require.Same(t, one, l.Get(a))
	require.NotSame(t, one, l.Get(b))
	require.Equal(t, []int{0, 1}, []int{l.Get(a).of, l.Get(b).of})
	require.Equal(t, 2, made)
}

func TestLocalsAreClosedWithTheirSchedulerTheLatestMadeFirst(t *testing.T) {
	var h history
	named := func(name string) func(*act.Scheduler) *engine {
		return func(*act.Scheduler) *engine { return &engine{name: name, h: &h} }
	}
	a, b := act.NewLocal(named("A")), act.NewLocal(named("B"))
	onTop := act.NewLocal(func(s *act.Scheduler) *engine {
		b.Get(s) // stands on B, so it goes before it
		return &engine{name: "T", h: &h}
	})
	unused := act.NewLocal(named("U"))
	s, _ := newScheduler(t, act.Config{})
	onTop.Get(s)
	a.Get(s)
	s.Attach(reader{&held{}, func() { require.Equal(t, "A", a.Get(s).name, "still readable, for what closes after it") }})
	require.NoError(t, s.Run())
	require.Empty(t, h.String(), "the end of a Run closes nothing")
	require.NoError(t, s.Close())
	require.Equal(t, "ATB", h.String())
	require.PanicsWithValue(t, "act: a Local was used on a closed Scheduler", func() { unused.Get(s) })
}

type reader struct {
	*held
	read func()
}

func (r reader) Close() error {
	r.read()
	return nil
}

func TestALocalThatCannotBeClosedDoesNotKeepTheOthersOpen(t *testing.T) {
	closed := 0
	locals := make([]*act.Local[*closer], 3)
	for i := range locals {
		locals[i] = act.NewLocal(func(*act.Scheduler) *closer {
			return &closer{func() error {
				switch closed++; i {
				case 1:
					panic("will not")
				case 2:
					return errors.New("cannot")
				}
				return nil
			}}
		})
	}
	s, logs := newScheduler(t, act.Config{})
	for _, l := range locals {
		l.Get(s)
	}
	require.NoError(t, s.Close())
	require.Equal(t, 3, closed)
	require.Len(t, messages(logs), 2)
}

func TestPutInjectsAValueBeforeTheFirstUseAndPanicsAfterIt(t *testing.T) {
	var h history
	l := act.NewLocal(func(*act.Scheduler) *engine { panic("made") })
	s, _ := newScheduler(t, act.Config{})
	fake := &engine{name: "F", h: &h}
	l.Put(s, fake)
	require.Same(t, fake, l.Get(s))
	require.PanicsWithValue(t, "act: Local.Put after the first use", func() { l.Put(s, fake) })
	require.NoError(t, s.Close())
	require.Equal(t, "F", h.String(), "closed as if it had been made here")
}

func TestADropReachesWhatTheLocalsKeepGoing(t *testing.T) {
	drops := 0
	l := act.NewLocal(func(*act.Scheduler) dropper { return dropper(func() { drops++ }) })
	broken := act.NewLocal(func(*act.Scheduler) dropper { return dropper(func() { panic("boom") }) })
	s, logs := newScheduler(t, act.Config{})
	l.Get(s)
	broken.Get(s)
	s.Spawn(act.Func(forever))
	s.Shutdown(haltAndDrop)
	requireCut(t, s.Run())
	require.Equal(t, 1, drops)
	require.Equal(t, []string{"a task failed"}, messages(logs), "one that panics is reported, and harms nothing else")
	s.Spawn(yields(3))
	s.Shutdown(shutdown.Policy{Kind: shutdown.Unbounded})
	require.NoError(t, s.Run(), "the value stays usable")
	require.Equal(t, 1, drops, "and nothing is dropped where the order does not say so")
}

// dropper is a Local's value with a Drop made of a function.
type dropper func()

func (f dropper) Drop() { f() }

// A scheduler walks over hundreds of thousands of Tasks.
func TestATaskIsOneCacheLine(t *testing.T) {
	require.LessOrEqual(t, act.TaskSize, uintptr(64))
}

// property notes its closing.
func (h *history) property(letter string) *closer {
	return &closer{func() error {
		h.WriteString(letter)
		return nil
	}}
}

// resourceful is an action that is an io.Closer.
type resourceful struct {
	act.Func
	*closer
}

func TestWhatATaskOwnsIsClosedLastFirstThenTheAction(t *testing.T) {
	for _, row := range []struct {
		name string
		end  act.Func
		want string
	}{
		{"done", func(*act.Task) act.Directive { return act.Done }, "321a"},
		{"failed", func(*act.Task) act.Directive { return act.Failed }, "321a"},
		{"panicked", func(*act.Task) act.Directive { return explode("boom") }, "321a"},
		{"dropped by Close", func(t *act.Task) act.Directive {
			t.Waker()
			t.Scheduler().Post(func(s *act.Scheduler) { s.Shutdown(halt) })
			return act.Wait
		}, "321a"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, _ := newScheduler(t, act.Config{})
			var h history
			s.Spawn(resourceful{func(t *act.Task) act.Directive {
				for _, letter := range []string{"1", "2", "3"} {
					t.Own(h.property(letter))
				}
				return row.end(t)
			}, h.property("a")})
			_ = s.Run()
			_ = s.Close()
			require.Equal(t, row.want, h.String())
		})
	}
}

func TestReleaseHandsOn(t *testing.T) {
	s, _ := newScheduler(t, act.Config{})
	var h history
	var kept *closer
	s.Spawn(act.Func(func(task *act.Task) act.Directive {
		require.False(t, task.Release(h.property("?")), "owns nothing yet")
		kept = h.property("2")
		task.Own(h.property("1"))
		task.Own(kept)
		task.Own(h.property("3"))
		require.True(t, task.Release(kept))
		require.False(t, task.Release(kept), "not twice")
		task.Own(kept)
		task.Own(kept)
		require.True(t, task.Release(kept), "the latest of two")
		require.True(t, task.Release(kept))
		return act.Done
	}))
	require.NoError(t, s.Run())
	require.Equal(t, "31", h.String())
	require.NoError(t, kept.Close())
	require.Equal(t, "312", h.String())
}

func TestClosersThatFailOrPanic(t *testing.T) {
	failing := func(h *history, letter string) *closer {
		return &closer{func() error {
			h.WriteString(letter)
			return errors.New("disk full")
		}}
	}
	panicking := func(h *history, letter string) *closer {
		return &closer{func() error {
			h.WriteString(letter)
			panic("closed the wrong door")
		}}
	}
	for _, last := range []act.Directive{act.Done, act.Failed} {
		t.Run(last.String(), func(t *testing.T) {
			var ended []error
			s, logs := newScheduler(t, act.Config{Trace: &act.Trace{
				Ended: func(_ *act.Task, err error) { ended = append(ended, err) },
			}})
			var h history
			s.Spawn(resourceful{func(t *act.Task) act.Directive {
				t.Own(panicking(&h, "1"))
				t.Own(failing(&h, "2"))
				t.Own(panicking(&h, "3"))
				return last
			}, panicking(&h, "a")})
			s.Spawn(h.script("B", 1, act.Yield))
			require.NoError(t, s.Run())
			require.Equal(t, "321aB", h.String(), "each is tried once, and nothing else disturbed")
			require.Len(t, ended, 2, "each leaves once")

			want := []string{"a task failed", "closing failed", "a task failed", "a task failed"}
			if last == act.Failed {
				want = append([]string{"a task failed"}, want...)
			}
			require.Equal(t, want, messages(logs))
			for _, e := range logs.FilterMessage("a task failed").All() {
				require.Equal(t, "act_test.resourceful", e.ContextMap()["task"])
			}
		})
	}
}
