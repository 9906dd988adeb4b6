package topic_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/topic"
)

const publishers, each = 4, 300

// counter checks that the messages of each publisher come in order, and says when all have come.
type counter struct {
	t    *testing.T
	next [publishers]int
	left int
	done func()
}

func (c *counter) count(m *topic.Message) bool {
	var who, n int
	if _, err := fmt.Sscan(string(m.Data), &who, &n); err != nil || c.next[who] != n {
		c.t.Errorf("%q after %v", m.Data, c.next)
		c.left = 1
	}
	c.next[who]++
	if c.left--; c.left == 0 {
		c.done()
	}
	return c.left > 0
}

// TestGoroutinesAndTasks has goroutines and tasks that publish, subscribe, receive and close at the same time.
func TestGoroutinesAndTasks(t *testing.T) {
	var wait sync.WaitGroup
	counts := func() *counter {
		wait.Add(1)
		return &counter{t: t, left: publishers * each, done: wait.Done}
	}
	b := topic.New(topic.Config{Pending: 40, Rules: []topic.Rule{{Filter: "#", History: 10}}})
	task := func(s *act.Scheduler) error {
		var sub *topic.Subscription
		c := counts()
		s.Spawn(act.Func(func(t *act.Task) act.Directive {
			if sub == nil {
				sub = b.Subscribe(t, topic.Options{Queue: publishers * each})
				_ = sub.Add("a/#")
			}
			if t.Order() != nil { // others need the scheduler until then
				return act.Done
			}
			m, err := sub.Take()
			if err == nil {
				c.count(m)
			}
			return listener.Next(t, err)
		}))
		return nil
	}
	r := servertest.Start(t, act.Config{Schedulers: 2}, b.Setup, task)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		sub, c := b.Subscribe(nil, topic.Options{Queue: publishers * each}), counts()
		require.NoError(t, sub.Add("a/+"))
		go func() {
			m, err := sub.Receive(ctx)
			for ; err == nil && c.count(m); m, err = sub.Receive(ctx) {
			}
			if err = errors.Join(err, sub.Close()); err != nil {
				t.Error(err)
			}
		}()
	}
	for i := range publishers {
		name := fmt.Sprint("a/", i)
		wait.Go(func() {
			for n := range each {
				if err := b.PublishWait(ctx, topic.Publication{Topic: name, Data: fmt.Append(nil, i, n), Retain: n%10 == 0}); err != nil {
					t.Error(err)
				}
			}
		})
		wait.Go(func() { // too slow, and closed
			for n := range each / 10 {
				sub := b.Subscribe(nil, topic.Options{Queue: 1, Overflow: topic.Overflow(n % 3)})
				_, _, _ = sub.Follow(name, topic.Earliest), sub.Add("a/#"), sub.Add(name)
				for range i {
					_, _ = sub.Receive(ctx)
				}
				sub.Remove(name)
				_ = sub.Close()
			}
		})
	}
	servertest.InTime(t, wait.Wait)
	r.Group.Shutdown(servertest.Drain)
	require.NoError(t, r.End())
}

// TestPublishWait shows that a publisher waits for a scheduler, and not beyond its context.
func TestPublishWait(t *testing.T) {
	b, s := stepped(t, topic.Config{Pending: 1})
	sub := b.Subscribe(nil, topic.Options{})
	require.NoError(t, sub.Add("a")) // which waits for the scheduler as well
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	publish := func(ctx context.Context) { ended <- b.PublishWait(ctx, topic.Publication{Topic: "a"}) }
	go publish(ctx)
	cancel()
	servertest.InTime(t, func() { require.ErrorIs(t, <-ended, context.Canceled) })
	go publish(t.Context())
	step(t, s, 10)
	servertest.InTime(t, func() { require.NoError(t, <-ended) })
	step(t, s, 10)
	_, err := sub.Take()
	require.NoError(t, err)
}

// stepped returns a Broker on a scheduler that the test steps, even without a task.
func stepped(t *testing.T, cfg topic.Config) (*topic.Broker, *act.Scheduler) {
	b, s := topic.New(cfg), servertest.New(t, act.Config{Threads: act.Stepped}).S
	s.Internals().KeepRunning(1)
	require.NoError(t, b.Setup(s))
	return b, s
}

func step(t *testing.T, s *act.Scheduler, turns int) {
	_, err := s.Step(turns)
	require.NoError(t, err)
}

// TestATurnIsBounded shows that a turn of a lane goes to a few thousand subscriptions at most.
func TestATurnIsBounded(t *testing.T) {
	const subscriptions, messages, bound = 1500, 4, 4096
	b, s := stepped(t, topic.Config{})
	subs := make([]*topic.Subscription, subscriptions)
	for i := range subs {
		subs[i] = b.Subscribe(nil, topic.Options{})
		require.NoError(t, subs[i].Add("a"))
	}
	step(t, s, 10)
	for range messages {
		require.NoError(t, b.Publish(topic.Publication{Topic: "a"}))
	}
	for all := 0; all < subscriptions*messages; {
		step(t, s, 1)
		got := 0
		for _, sub := range subs {
			for m, _ := sub.Take(); m != nil; m, _ = sub.Take() {
				got++
			}
		}
		require.True(t, 0 < got && got <= bound, "%d", got)
		all += got
	}
}

// TestAMessageIsOneAllocation counts the allocations of a message, however many tasks take it.
func TestAMessageIsOneAllocation(t *testing.T) {
	tier.NoRace(t, "which allocates")
	b, s := stepped(t, topic.Config{})
	for n := range 3 {
		got := 0
		p := topic.Publication{Topic: fmt.Sprint("a/", n)}
		for range n {
			sub := b.Subscribe(nil, topic.Options{})
			require.NoError(t, sub.Add(p.Topic))
			s.Spawn(act.Func(func(t *act.Task) act.Directive {
				m, err := sub.Take()
				if m != nil {
					got++
				}
				return listener.Next(t, err)
			}))
		}
		step(t, s, 100)
		require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
			require.NoError(t, b.Publish(p))
			step(t, s, 100)
		}))
		require.Equal(t, 101*n, got)
	}
}
