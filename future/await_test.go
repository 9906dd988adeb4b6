package future

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/shutdown"
)

// dropped lets all tasks wait, and then drops them.
func dropped(t *testing.T, s *act.Scheduler) {
	for n := 1; n > 0; {
		var err error
		n, err = s.Step(100)
		require.NoError(t, err)
	}
	s.Shutdown(shutdown.Policy{Kind: shutdown.Halt, Drop: true})
	require.IsType(t, &shutdown.Cut{}, s.Run())
}

// Tasks may wait again and again for a future that lives as long as the program, such as "the configuration has
// changed", beside something else.
func TestGivingUpLeavesNothingBehind(t *testing.T) {
	home, other := act.New(act.Config{}), act.New(act.Config{})
	defer home.Close()
	defer other.Close()
	f := New[int](home)
	for _, s := range []*act.Scheduler{home, other} {
		for range 100 {
			ready := New[int](s)
			_ = ready.Resolve(1)
			again := 0
			s.Spawn(act.Seq(
				act.First(f.Await(), act.Func(func(t *act.Task) act.Directive {
					if again++; again == 3 {
						return act.Done
					}
					return act.Yield
				})),
				act.First(f.Await(), ready.Await())))
			require.NoError(t, s.Run())
			All(s, f)
			dropped(t, s)
		}
	}
	require.Nil(t, f.waiters.First)
	require.NoError(t, f.Resolve(1))
	require.Nil(t, home.Close())
}

// Wait returns whichever comes first, the outcome or the end of the context, and any number of goroutines may wait.
func TestGoroutinesWait(t *testing.T) {
	g := act.NewGroup(act.Config{Schedulers: 1})
	defer g.Close()
	f := New[int](g.Schedulers()[0])
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Wait(ended)
	require.ErrorIs(t, err, context.Canceled)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			v, err := f.Wait(t.Context())
			assert.NoError(t, err)
			assert.Equal(t, 7, v)
		})
	}
	require.NoError(t, f.Resolve(7))
	all.Wait()
	v, err := f.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, 7, v)
}
