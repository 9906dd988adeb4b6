package future

import (
	"testing"

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
