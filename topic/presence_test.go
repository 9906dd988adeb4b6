package topic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/topic"
)

func TestPresence(t *testing.T) {
	b := topic.New(topic.Config{Topics: 2, Rules: []topic.Rule{{Filter: "room/#", Presence: true}}})
	g := act.NewGroup(act.Config{Schedulers: 2, Threads: act.Stepped})
	for _, s := range g.Schedulers() {
		require.NoError(t, b.Setup(s))
		s.Internals().KeepRunning(1)
	}
	subscribes := func(id string) *topic.Subscription {
		return b.Subscribe(nil, topic.Options{Member: topic.Member{ID: id, Info: []byte("info of " + id)}})
	}
	watch, ann, ann2, bob, cy := subscribes("watch"), subscribes("ann"), subscribes("ann"), subscribes("bob"), subscribes("cy")
	for _, filter := range []string{"$presence/#", "room/1", "other"} {
		require.NoError(t, watch.Add(filter))
	}
	add := func(sub *topic.Subscription, filter string) func() {
		return func() { require.NoError(t, sub.Add(filter)) }
	}
	for _, step := range []struct {
		what    string
		do      func()
		events  string
		members string // of room/1
	}{
		{"the watcher has come before", func() {}, "+watch room/1 ", "watch "},
		{"a first subscription", add(ann, "room/1"), "+ann room/1 ", "ann watch "},
		{"the same filter again", add(ann, "room/1"), "", "ann watch "},
		{"a second one", add(ann2, "room/1"), "", "ann watch "},
		{"another room", add(ann2, "room/2"), "+ann room/2 ", "ann watch "},
		{"a filter that is a pattern", add(bob, "room/+"), "", "ann watch "},
		{"a topic without a rule", add(bob, "other"), "", "ann watch "},
		{"a message in between", func() {
			add(bob, "room/1")()
			require.NoError(t, b.Publish(topic.Publication{Topic: "room/1", Data: []byte("hello")}))
			bob.Remove("room/1")
		}, "+bob room/1 hello -bob room/1 ", "ann watch "},
		{"one topic too many", func() { require.ErrorIs(t, cy.Add("room/3"), topic.ErrTopics) }, "", "ann watch "},
		{"the first of two ends", func() { _ = ann.Close() }, "", "ann watch "},
		{"the other room is left", func() { require.True(t, ann2.Remove("room/2")) }, "-ann room/2 ", "ann watch "},
		{"the last one ends", func() { _ = ann2.Close() }, "-ann room/1 ", "watch "},
		{"there is room again", add(cy, "room/3"), "+cy room/3 ", "watch "},
		{"somebody else comes", add(cy, "room/1"), "+cy room/1 ", "cy watch "},
	} {
		step.do()
		stepAll(t, g)
		events, members := "", ""
		for m, err := watch.Take(); err == nil; m, err = watch.Take() {
			switch m.Kind {
			case topic.Published:
				events += string(m.Data) + " "
				continue
			case topic.Joined:
				events += "+"
			case topic.Left:
				events += "-"
			}
			require.Equal(t, "info of "+m.Member().ID, string(m.Member().Info))
			events += m.Member().ID + " " + m.Topic[len("$presence/"):] + " "
		}
		all, err := b.Members("room/1").Value()
		require.NoError(t, err)
		for _, m := range all {
			members += m.ID + " "
		}
		require.Equal(t, [2]string{step.events, step.members}, [2]string{events, members}, step.what)
	}
	for _, s := range g.Schedulers() {
		s.Internals().KeepRunning(-1)
	}
	require.NoError(t, g.Close())
}

// What was broken: a member that left, came and left, before the first of that was stored, stayed present on other machines.
func TestMembersWithAnEngine(t *testing.T) {
	m := newMachine(t, topic.Config{})
	deliver := <-m.deliver
	ann, watch := topic.Member{ID: "ann"}, m.b.Subscribe(nil, topic.Options{})
	sub := m.b.Subscribe(nil, topic.Options{Member: ann})
	require.NoError(t, watch.Add("$presence/p"))
	require.NoError(t, sub.Add("p"))
	m.step()
	require.Empty(t, m.changed, "it would not come back")
	deliver(nil)
	m.step()
	sub.Remove("p")
	require.NoError(t, sub.Add("p"))
	require.NoError(t, sub.Close())
	m.step()
	require.Equal(t, [][]topic.Change{{{Topic: "p", Kind: topic.Joined, Member: ann}},
		{{Topic: "p", Kind: topic.Left, Member: ann}}}, m.changed)
	_, err := watch.Take()
	require.Implements(t, (*act.Blocked)(nil), err, "it comes from the Engine")
	left := topic.Publication{Topic: "$presence/p"}
	deliver([]topic.Stored{{Publication: left, Position: m.at("a1"), Kind: topic.Left, Member: ann}})
	m.step()
	got, err := watch.Take()
	require.NoError(t, err)
	require.Equal(t, topic.Left, got.Kind)
	require.Equal(t, ann, got.Member())

	m.members = []topic.Member{{ID: "z"}, {ID: "a"}}
	f := m.b.Members("p")
	m.reads.run()
	all, err := f.Value()
	require.NoError(t, err)
	require.Equal(t, []topic.Member{{ID: "a"}, {ID: "z"}}, all)
	m.err = act.ErrClosed
	f = m.b.Members("p")
	m.reads.run()
	_, err = f.Value()
	require.ErrorIs(t, err, m.err)
}
