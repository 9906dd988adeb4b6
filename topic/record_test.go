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
