package topic_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

// A subscription may be taken from on one scheduler after the other: each message and the end wake the task that waits now.
func TestAnotherSchedulerTakesOver(t *testing.T) {
	b, g := topic.New(topic.Config{}), act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped})
	var sub *topic.Subscription
	var got string
	step := func() {
		for n := 1; n > 0; {
			n = 0
			for _, s := range g.Schedulers() {
				m, err := s.Step(100)
				require.NoError(t, err)
				n += m
			}
		}
	}
	takes := func(on int) {
		g.Schedulers()[on].Spawn(act.Func(func(t *act.Task) act.Directive {
			if sub == nil {
				sub = b.Subscribe(t, topic.Options{Queue: 1, Overflow: topic.End})
				t.Release(sub)
				_ = sub.Add("a")
			}
			m, err := sub.Take()
			switch _, blocked := err.(act.Blocked); {
			case blocked:
				return listener.Next(t, err)
			case err != nil:
				got += err.Error()
			default:
				got += string(m.Data)
			}
			return act.Done
		}))
		step()
	}
	says := func(text ...string) {
		for _, x := range text {
			require.NoError(t, b.Publish(topic.Publication{Topic: "a", Data: []byte(x)}))
		}
		step()
	}
	for _, s := range g.Schedulers() {
		require.NoError(t, b.Setup(s))
	}
	for i, on := range []int{0, 1, 1, 0, 1} {
		takes(on)
		says(string(rune('0' + i)))
		require.Equal(t, "01234"[:i+1], got)
	}
	require.NoError(t, sub.Err())
	says("5", "6") // one too many
	require.ErrorIs(t, sub.Err(), topic.ErrSlow)
	takes(1)
	require.Equal(t, "01234"+topic.ErrSlow.Error(), got)
	require.NoError(t, g.Close())
}

func TestFiltersAreBounded(t *testing.T) {
	b, g := topic.New(topic.Config{}), act.NewGroup(act.Config{Schedulers: 1, Threads: act.Stepped})
	require.NoError(t, b.Setup(g.Schedulers()[0]))
	sub := b.Subscribe(nil, topic.Options{})
	for n := range topic.MaxFilters {
		require.NoError(t, sub.Add(strconv.Itoa(n)))
	}
	require.ErrorIs(t, sub.Add("+"), topic.ErrFilters)
	require.NoError(t, sub.Add("7"), "which it has")
	require.True(t, sub.Remove("7"))
	require.NoError(t, sub.Add("+"))
	require.NoError(t, g.Close())
}
