package topic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/topic"
)

func TestWhatIsCountedAndLogged(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	clock := &servertest.Clock{}
	g := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped, Clock: clock, Logger: zap.New(core)})
	b := topic.New(topic.Config{Rules: []topic.Rule{{Filter: "kept/#", History: 1}}})
	for _, s := range g.Schedulers() {
		require.NoError(t, b.Setup(s))
		s.Internals().KeepRunning(1)
	}
	for _, o := range []topic.Options{{Queue: 1}, {Queue: 1, Overflow: topic.End}, {}} {
		sub := b.Subscribe(nil, o)
		require.NoError(t, sub.Add("a/#"))
		require.NoError(t, sub.Add("b"))
	}
	for range 3 {
		require.NoError(t, b.Publish(topic.Publication{Topic: "a/1"}))
	}
	require.NoError(t, b.Publish(topic.Publication{Topic: "kept/1"}))
	counts := func() map[string]uint64 {
		all := map[string]uint64{}
		for _, s := range g.Schedulers() {
			for name, n := range servertest.CountsOf(s) {
				if len(name) > 6 && name[:6] == "topic_" {
					all[name[6:]] += n
				}
			}
		}
		return all
	}
	require.EqualValues(t, 6, counts()["subscriptions"])
	require.EqualValues(t, 12, counts()["waiting"], "6 subscriptions, and 3 messages to each of 2 schedulers")
	stepAll(t, g)
	clock.Pass(time.Second)
	stepAll(t, g)
	require.Equal(t, map[string]uint64{"subscriptions": 4, "waiting": 0, "messages_total": 4, "delivered_total": 9,
		"dropped_total": 2, "slow_total": 1, "kept": 1, "unstored": 0}, counts())
	line := logs.FilterMessage("subscriptions to topics were too slow").All()
	require.Len(t, line, 1)
	require.Equal(t, map[string]any{"messages dropped": uint64(2), "subscriptions ended": uint64(1)}, line[0].ContextMap())
	for _, s := range g.Schedulers() {
		s.Internals().KeepRunning(-1)
	}
	require.NoError(t, g.Close())
}
