package topic_test

import (
	"io"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

// A subscription to a topic that others have as well, while no message waits. The first thing that a task owns takes 96 bytes of
// package act, whatever it is.
func TestMeasureASubscriptionAtRest(t *testing.T) {
	price.AtMost(t, "bytes of a subscription at rest", 150, func() float64 { return rest(t, false) })
	price.AtMost(t, "bytes of a subscription at rest, and of its task's record of it", 230, func() float64 { return rest(t, true) })
}

// rest returns the bytes for each subscription of a task.
func rest(t *testing.T, owned bool) float64 {
	const n = 50_000
	l, b := servertest.New(t, act.Config{}), topic.New(topic.Config{})
	require.NoError(t, b.Setup(l.S))
	wakers, subscribed := make([]act.Waker, 0, n), 0
	for range n {
		l.S.Spawn(act.Func(func(task *act.Task) act.Directive {
			if len(wakers) < n {
				wakers = append(wakers, task.Waker())
				return act.Wait
			}
			var owner topic.Owner = task
			if !owned {
				owner = forgetful{task}
			}
			sub := b.Subscribe(owner, topic.Options{})
			require.NoError(t, sub.Add("news/today"))
			subscribed++
			_, err := sub.Take()
			return listener.Next(task, err)
		}))
	}
	step := func() {
		_, err := l.S.Step(2 * n)
		require.NoError(t, err)
	}
	step()
	before := heap()
	for batch := range slices.Chunk(wakers, 100) { // so that no queue grows
		for _, w := range batch {
			w.Wake()
		}
		step()
	}
	after := heap()
	require.Equal(t, n, subscribed)
	return float64(after-before) / n
}

// forgetful is a task without a record of what it owns.
type forgetful struct{ *act.Task }

func (forgetful) Own(io.Closer) {}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
