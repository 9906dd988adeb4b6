package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

func TestThoseWhoseMarkIsReachedAreWokenInOrder(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var q engine.Writers
	woken := ""
	wait := func(name string, low int) {
		begun := false
		l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
			if begun {
				woken += name
				return act.Done
			}
			begun = true
			q.Await(t.Waker(), low)
			return act.Wait
		}))
	}
	wait("a", 100)
	wait("b", 0)
	wait("c", 100)
	wait("d", 50)
	l.For(0)
	for _, row := range []struct {
		queued int
		want   string
	}{{101, ""}, {100, "ac"}, {100, "ac"}, {1, "acd"}, {-1, "acdb"}, {-1, "acdb"}} {
		q.Wake(row.queued)
		l.For(0)
		require.Equal(t, row.want, woken, "at %d", row.queued)
	}
	require.Empty(t, q)
}

// A task that has other reasons to be woken, such as input, waits for room again in each of its turns.
func TestATaskThatWaitsForRoomAgainAndAgainTakesOnePlace(t *testing.T) {
	l := servertest.New(t, act.Config{})
	var q engine.Writers
	const patient = 20
	woken := 0
	for range patient {
		l.S.Spawn(servertest.Waits(func(t *act.Task) { q.Await(t.Waker(), 0) }, &woken))
	}
	turns := 0
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		q.Await(t.Waker(), 0)
		if turns++; turns == 10_000 {
			return act.Done
		}
		return act.Yield
	}))
	l.Until("it has ended", func() bool { return turns == 10_000 })
	require.LessOrEqual(t, cap(q), 4*(patient+1))
	require.Zero(t, woken)
	q.Wake(0)
	l.Until("the others are woken", func() bool { return woken == patient })
}
