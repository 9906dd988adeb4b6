package act_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
)

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
