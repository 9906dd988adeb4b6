package topic_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

type reader struct {
	b    *topic.Broker
	sub  *topic.Subscription
	want int
	got  []string
}

func (r *reader) Act(t *act.Task) act.Directive {
	if r.sub == nil {
		r.sub = r.b.Subscribe(t, topic.Options{})
		if err := r.sub.Add("a/+"); err != nil {
			return t.Fail(err)
		}
		_ = r.sub.Add("a/#")
	}
	for len(r.got) < r.want {
		m, err := r.sub.Take()
		if err != nil {
			return listener.Next(t, err)
		}
		r.got = append(r.got, fmt.Sprintf("%s=%s", m.Topic, m.Data))
	}
	return act.Done
}

func TestSmoke(t *testing.T) {
	b := topic.New(topic.Config{Rules: []topic.Rule{{Filter: "a/#", History: 3}}})
	r := &reader{b: b, want: 5}
	pub := 0
	err := act.Run(context.Background(), act.Config{Schedulers: 2}, b.Setup, func(s *act.Scheduler) error {
		if s.Index() == 1 {
			s.Spawn(r)
		} else {
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				if pub < 2000 && len(r.got) < 5 {
					pub++
					_ = b.Publish(topic.Publication{Topic: fmt.Sprintf("a/%d", pub), Data: []byte("x")})
					return act.Yield
				}
				return act.Done
			}))
		}
		return nil
	})
	require.NoError(t, err)
	t.Log(r.got, pub)
}
