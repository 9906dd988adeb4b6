package topic_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/topic"
)

// A topic that is followed is not forgotten, however long it is without a message, and keeps no other topic.
func TestQuietTopicsKeepNoOthers(t *testing.T) {
	const topics, followed = 100, 90
	b, s := stepped(t, topic.Config{Topics: topics, Rules: []topic.Rule{{Filter: "#", History: 1}}})
	sub := b.Subscribe(nil, topic.Options{})
	for i := range followed {
		require.NoError(t, b.Publish(topic.Publication{Topic: fmt.Sprint("quiet/", i)}))
		require.NoError(t, sub.Follow(fmt.Sprint("quiet/", i), topic.Position{}))
	}
	publish := func(first, n int) {
		for i := range n {
			require.NoError(t, b.Publish(topic.Publication{Topic: fmt.Sprint("other/", first+i)}))
		}
	}
	publish(0, 3*topics)
	require.NoError(t, sub.Close())
	publish(1000, 3*topics)
	step(t, s, 10)
	late := b.Subscribe(nil, topic.Options{})
	for i := range topics {
		require.NoError(t, late.Follow(fmt.Sprint("new/", i), topic.Position{}))
	}
	require.ErrorIs(t, b.Publish(topic.Publication{Topic: "more"}), topic.ErrTopics)
	require.NoError(t, late.Close())
}

// A subscription that brings retained messages, or none, again and again takes them before it gets more.
func TestWhatIsBroughtIsBounded(t *testing.T) {
	const kept, most = 1000, 1<<16 + 1000
	b, s := stepped(t, topic.Config{Rules: []topic.Rule{{Filter: "h", History: 1}}})
	for i := range kept {
		require.NoError(t, b.Publish(topic.Publication{Topic: fmt.Sprint("a/", i), Data: []byte("x"), Retain: true}))
	}
	sub := b.Subscribe(nil, topic.Options{Queue: 1})
	for _, again := range []func() error{
		func() error { return sub.Add("a/+") },
		func() error { _ = sub.Remove("a/+"); return sub.Add("a/+") },
		func() error { return sub.Follow("h", topic.Position{}) },
	} {
		brought := 0
		for n := 0; ; n++ {
			require.Less(t, n, 2*topic.MaxFilters)
			if err := again(); err != nil {
				require.ErrorIs(t, err, topic.ErrFilters)
				break
			}
			step(t, s, 10)
		}
		for m, _ := sub.Take(); m != nil; m, _ = sub.Take() {
			brought++
		}
		require.LessOrEqual(t, brought, most)
		require.NoError(t, again())
	}
}
