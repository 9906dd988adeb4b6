package act_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

// broadcaster broadcasts n numbers from a task, which waits while there is no room.
type broadcaster struct {
	poster
	note func(s *act.Scheduler, number int)
	base int
}

func newBroadcaster(g *act.Group, base, n int, note func(s *act.Scheduler, number int)) *broadcaster {
	b := &broadcaster{note: note, base: base}
	b.poster = poster{n: n, post: func(func(*act.Scheduler)) error {
		number := b.base + b.n
		return g.Broadcast(func(s *act.Scheduler) { note(s, number) })
	}}
	return b
}

// Tasks and goroutines broadcast at once, through inboxes that are nearly always full, beside others that post.
func TestBroadcastsComeInOneOrderEverywhere(t *testing.T) {
	const each, senders = 500, 4
	g, _ := newGroup(t, act.Config{Schedulers: 3, Inbox: 2})
	var seen [3][]int
	note := func(s *act.Scheduler, number int) {
		if seen[s.Index()] = append(seen[s.Index()], number); len(seen[s.Index()]) == 2*senders*each {
			s.Internals().KeepRunning(-1)
		}
	}
	var all sync.WaitGroup
	var posts, posted atomic.Int32
	servertest.InTime(t, func() {
		require.NoError(t, g.Run(t.Context(), func(s *act.Scheduler) error {
			s.Internals().KeepRunning(1)
			if s.Index() > 0 {
				return nil
			}
			for i := range senders {
				g.Schedulers()[i%3].Post(func(s *act.Scheduler) { s.Spawn(newBroadcaster(g, 10_000*i, each, note)) })
				all.Go(func() {
					for n := range each {
						if g.Broadcast(func(s *act.Scheduler) { note(s, 10_000*(senders+i)+n) }) != nil {
							panic("refused")
						}
						if g.Schedulers()[n%3].Post(func(*act.Scheduler) { posts.Add(1) }) == nil {
							posted.Add(1)
						}
					}
				})
			}
			return nil
		}))
		all.Wait()
	})
	require.NoError(t, g.Run(t.Context())) // posts that came last
	require.Equal(t, posted.Load(), posts.Load())
	require.Len(t, seen[0], 2*senders*each)
	require.Equal(t, seen[0], seen[1])
	require.Equal(t, seen[0], seen[2])
}

func TestABroadcastIsForAllOrNone(t *testing.T) {
	g, _ := newGroup(t, act.Config{Schedulers: 2, Inbox: 1, Threads: act.Stepped})
	a, b := g.Schedulers()[0], g.Schedulers()[1]
	var h history
	require.NoError(t, b.Post(func(*act.Scheduler) { h.WriteString("p") }))
	broadcasts := newBroadcaster(g, 0, 1, func(s *act.Scheduler, _ int) { h.WriteString(string(rune('a' + s.Index()))) })
	a.Spawn(broadcasts)
	for range 3 {
		_, err := a.Step(10)
		require.NoError(t, err)
	}
	require.Equal(t, 1, broadcasts.turns, "it waits")
	require.Empty(t, h.String(), "nothing is called where there is room")
	_, err := b.Step(10)
	require.NoError(t, err)
	for _, s := range []*act.Scheduler{a, b} {
		_, err := s.Step(10)
		require.NoError(t, err)
	}
	require.Equal(t, "pab", h.String())
	require.NoError(t, b.Close())
	servertest.InTime(t, func() { require.ErrorIs(t, g.Broadcast(func(*act.Scheduler) { h.WriteString("!") }), act.ErrClosed) })
	_, err = a.Step(10)
	require.NoError(t, err)
	require.True(t, a.Finished())
	require.Equal(t, "pab", h.String())
}
