package topic_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/future"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/topic"
)

// machine is a Broker with an Engine, whose calls return when the test says so.
type machine struct {
	t       *testing.T
	topic   string // of the history
	g       *act.Group
	b       *topic.Broker
	stores  calls
	reads   calls
	deliver chan func([]topic.Stored)
	lost    chan error
	subs    []*topic.Subscription

	published [][]topic.Publication
	changed   [][]topic.Change
	members   []topic.Member
	history   []topic.Stored
	last      topic.Position
	read      int    // how often
	during    func() // called while that is read
	err       error  // of the next calls
}

// calls is an Executor for functions that the test runs.
type calls []func()

func (c *calls) Execute(f func()) { *c = append(*c, f) }

func (c *calls) run() {
	for len(*c) > 0 {
		f := (*c)[0]
		*c = (*c)[1:]
		f()
	}
}

type executors []act.Executor

func (*executors) Execute(func()) { panic("no function of this test") }

func (x *executors) Reserve(int) act.Executor {
	next := (*x)[0]
	*x = (*x)[1:]
	return next
}

// apart runs functions on goroutines.
type apart struct{}

func (apart) Execute(f func()) { go f() }

func newMachine(t *testing.T, cfg topic.Config) *machine {
	m := &machine{t: t, topic: "h", deliver: make(chan func([]topic.Stored)), lost: make(chan error)}
	cfg.Engine, cfg.Rules = m, []topic.Rule{{Filter: "h", History: 3}, {Filter: "$h", History: 3}, {Filter: "p", Presence: true}}
	m.b = topic.New(cfg)
	m.g = act.NewGroup(act.Config{
		Schedulers: 2, Threads: act.Stepped, Clock: &servertest.Clock{}, Executor: &executors{&m.stores, &m.reads, apart{}}, Logger: zap.NewNop(),
	})
	t.Cleanup(func() { require.NoError(t, m.g.Close()) })
	for _, s := range m.g.Schedulers() {
		require.NoError(t, m.b.Setup(s))
		s.Internals().KeepRunning(1) // or nothing happens
		t.Cleanup(func() { s.Internals().KeepRunning(-1) })
	}
	return m
}

func (m *machine) Publish(_ context.Context, messages []topic.Publication) (at []topic.Position, err error) {
	m.published = append(m.published, messages)
	for i := range messages {
		at = append(at, topic.Position{Epoch: "a", Offset: uint64(len(m.published)*100 + i)})
	}
	return at, m.err
}

func (m *machine) Feed(ctx context.Context, _ []topic.Rule, deliver func([]topic.Stored)) error {
	select {
	case m.deliver <- deliver:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-m.lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *machine) History(context.Context, string, topic.Rule) ([]topic.Stored, topic.Position, error) {
	m.read++
	messages, last := m.history, m.last
	if during := m.during; during != nil {
		m.during = nil
		during()
	}
	return messages, last, m.err
}

func (m *machine) Change(_ context.Context, changes []topic.Change) error {
	m.changed = append(m.changed, changes)
	return m.err
}

func (m *machine) Members(context.Context, string) ([]topic.Member, error) { return m.members, m.err }

// step runs the schedulers until they have nothing to do, and what they have stored.
func (m *machine) step() {
	for range 3 {
		for _, s := range m.g.Schedulers() {
			_, err := s.Step(1000)
			require.NoError(m.t, err)
		}
		m.stores.run()
	}
}

// at returns a position from its text: an epoch, and an offset.
func (m *machine) at(text string) topic.Position {
	if text == "0" {
		return topic.Position{}
	}
	n, err := strconv.ParseUint(text[1:], 10, 64)
	require.NoError(m.t, err)
	return topic.Position{Epoch: text[:1], Offset: n}
}

// stored returns messages of the topic, from their positions.
func (m *machine) stored(texts ...string) (all []topic.Stored) {
	for _, text := range texts {
		all = append(all, topic.Stored{Publication: topic.Publication{Topic: m.topic, Data: []byte(text)}, Position: m.at(text)})
	}
	return all
}

// got returns what the subscriptions have got: the positions, and of Followed whether it was complete.
func (m *machine) got() (all []string) {
	m.step()
	for _, sub := range m.subs {
		var got []string
		x, err := sub.Take()
		for ; err == nil; x, err = sub.Take() {
			at := fmt.Sprint(x.Epoch, x.Offset)
			switch {
			case x.Kind == topic.Followed && x.Complete:
				at = "all after " + at
			case x.Kind == topic.Followed:
				at = "lost until " + at
			default:
				require.Equal(m.t, at, string(x.Data))
			}
			got = append(got, at)
		}
		if _, ok := err.(act.Blocked); !ok {
			got = append(got, err.Error())
		}
		all = append(all, strings.Join(got, ", "))
	}
	return all
}

// TestFollowWithAnEngine plays scripts. feed is what Feed delivers, history what History returns, and what its last Position is
// if that is not the last one of the messages; read lets reads return, lost is an error of Feed, after which it begins again.
func TestFollowWithAnEngine(t *testing.T) {
	for _, row := range []struct {
		name, script string
		read         int
		want         []string
	}{
		{"the history is read once, and joined with what came meanwhile",
			"feed a5; history a4 a5 a6; follow a3; follow a3; feed a6; read; follow a4; feed a7", 1,
			[]string{"all after a3, a4, a5, a6, a7", "all after a3, a4, a5, a6, a7", "all after a4, a5, a6, a7"}},
		{"nothing is read for what has come", "feed a5 a6; follow a5; follow a4; follow 0; feed a7", 0,
			[]string{"all after a5, a6, a7", "all after a4, a5, a6, a7", "all after a6, a7"}},
		{"the end of a topic without messages is read", "history empty a9; follow 0; follow a9; read; feed a10", 1,
			[]string{"all after a9, a10", "all after a9, a10"}},
		{"what is too old is lost", "history a7 a8 a9; follow a5; follow b1; read; feed a10", 1,
			[]string{"lost until a6, a7, a8, a9, a10", "lost until a6, a7, a8, a9, a10"}},
		{"a subscription may be ahead of Feed", "feed a5; history a4 a5 a6; follow a6; feed a6; read; feed a7", 1,
			[]string{"all after a6, a7"}},
		{"or be wrong", "feed a5; history a4 a5; follow a9; read; feed a6", 1, []string{"lost until a3, a4, a5, a6"}},
		{"one that comes during a read may need another", "feed a5; history a4 a5; follow a3; during follow a6; read; feed a6; history a4 a5 a6; read", 2,
			[]string{"all after a3, a4, a5, a6", "all after a6"}},
		{"what comes again is skipped", "feed a5 a6; follow a5; feed a5 a6 a7 a7", 0, []string{"all after a5, a6, a7"}},
		{"what is missing is read", "feed a5; follow a5; feed a7; feed a8; history a6 a7 a8; read; feed a8 a9", 1,
			[]string{"all after a5, a6, a7, a8, a9"}},
		{"and is lost if it is not there", "feed a5; follow a5; feed a9; history a8 a9; read; feed a10", 1,
			[]string{"all after a5, lost until a7, a8, a9, a10"}},
		{"what is missing after a read is read again", "feed a5; follow a5; feed a7; history a6 a7; during feed a8; read; history a6 a7 a8; read", 2,
			[]string{"all after a5, a6, a7, a8"}},
		{"another epoch is a loss", "feed a5; follow a5; feed b1 b2", 0, []string{"all after a5, lost until b0, b1, b2"}},
		{"a new Feed has the followed topics read", "feed a5; follow a5; lost; history a4 a5 a6; read; feed a7", 1,
			[]string{"all after a5, a6, a7"}},
		{"and others when somebody follows them", "feed a5; lost; history a4 a5 a6; follow a5; read; feed a7", 1,
			[]string{"all after a5, a6, a7"}},
		{"and a loss is told without a message", "feed a5; follow a5; lost; history empty b5; read; feed b6", 1,
			[]string{"all after a5, lost until b5, b6"}},
		{"and once more what is being read then", "feed a5; history a4 a5; follow a3; during lost; read; history a4 a5 a6; read; feed a7", 2,
			[]string{"all after a3, a4, a5, a6, a7"}},
		{"a name may begin with $", "dollar; feed a5; follow a5; lost; history a4 a5 a6; read; feed a7", 1, []string{"all after a5, a6, a7"}},
		{"too many filters meanwhile end what waits", "history a5; follow a4; filters; read", 1, []string{topic.ErrFilters.Error()}},
		{"an error ends what waits", "feed a5; follow a5; follow a3; fail; read; feed a6", 1,
			[]string{"all after a5, lost until a5, a6", "gone"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t, topic.Config{})
			deliver := <-m.deliver
			deliver(nil)
			var do func(words []string)
			do = func(words []string) {
				switch words[0] {
				case "feed":
					deliver(m.stored(words[1:]...))
				case "follow":
					m.follow(words[1])
				case "during":
					m.during = func() { do(words[1:]) }
				case "history":
					m.last = m.at(words[len(words)-1])
					if m.history = nil; words[1] != "empty" {
						m.history = m.stored(words[1:]...)
					}
				case "read":
					for _, f := range m.reads {
						m.reads = m.reads[1:]
						f()
					}
				case "lost":
					m.lost <- errors.New("gone")
					deliver = <-m.deliver
					deliver(nil)
				case "dollar":
					m.topic = "$h"
				case "filters":
					for n := range topic.MaxFilters {
						require.NoError(t, m.subs[0].Add(fmt.Sprint(n)))
					}
				case "fail":
					m.err = errors.New("gone")
				}
			}
			for command := range strings.SplitSeq(row.script, "; ") {
				do(strings.Fields(command))
			}
			require.Equal(t, row.want, m.got())
			require.Equal(t, row.read, m.read)
		})
	}
}

func (m *machine) follow(after string) {
	sub := m.b.Subscribe(nil, topic.Options{})
	require.NoError(m.t, sub.Follow(m.topic, m.at(after)))
	m.subs = append(m.subs, sub)
	m.step()
}

// What is retained comes once, even if Feed begins again, and until it is not retained any more.
func TestRetainedWithAnEngine(t *testing.T) {
	m := newMachine(t, topic.Config{})
	feed := func(offset uint64, data string) {
		(<-m.deliver)([]topic.Stored{{
			Publication: topic.Publication{Topic: "r", Data: []byte(data), Retain: true}, Retained: true,
			Position: topic.Position{Epoch: "a", Offset: offset},
		}})
		m.step()
	}
	got := func(sub *topic.Subscription) (all []string) {
		require.NoError(t, sub.Add("r"))
		m.step()
		for x, err := sub.Take(); err == nil; x, err = sub.Take() {
			all = append(all, fmt.Sprintf("%s %t", x.Data, x.Retained))
		}
		return all
	}
	early := m.b.Subscribe(nil, topic.Options{})
	require.Empty(t, got(early))
	for _, step := range []struct {
		offset      uint64
		data        string
		early, late []string
	}{
		{1, "old", []string{"old false", "old true"}, []string{"old true"}},
		{1, "old", []string{"old true"}, []string{"old true"}},
		{3, "new", []string{"new false", "new true"}, []string{"new true"}},
		{4, "", []string{" false"}, nil},
		{4, "", nil, nil},
	} {
		feed(step.offset, step.data)
		require.Equal(t, step.early, got(early), step.offset)
		require.Equal(t, step.late, got(m.b.Subscribe(nil, topic.Options{})), step.offset)
		m.lost <- errors.New("gone")
	}
	(<-m.deliver)(nil)
}

func TestConfirm(t *testing.T) {
	m := newMachine(t, topic.Config{Pending: 2})
	confirm := func(name string) *future.Future[topic.Position] {
		f, err := m.b.Confirm(topic.Publication{Topic: name})
		require.NoError(t, err)
		m.step()
		return f
	}
	first, second := confirm("h"), confirm("other")
	require.Empty(t, m.published, "it would not come back")
	_, err := m.b.Confirm(topic.Publication{Topic: "h"})
	require.Implements(t, (*act.Blocked)(nil), err)
	(<-m.deliver)(nil)
	m.step()
	require.Len(t, m.published, 1)
	at, err := first.Value()
	require.NoError(t, err)
	require.Equal(t, m.at("a100"), at)
	at, err = second.Value()
	require.NoError(t, err)
	require.Zero(t, at, "it has no history")
	m.err = errors.New("gone")
	_, err = confirm("h").Value()
	require.ErrorIs(t, err, m.err)
}
