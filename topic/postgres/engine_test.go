package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/topic"
)

func TestAllMachinesGetTheSame(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	a, b := open(t, schema), open(t, schema)
	at := a.publish("x", "1", "y", "2", "x", "3")
	require.EqualValues(t, 2, at[2].Offset)
	b.publish("x", "4")
	want := []string{"x 1 1", "y 1 2", "x 2 3", "x 3 4"}
	require.Equal(t, want, a.next(4))
	require.Equal(t, want, b.next(4))
}

func TestHistoryIsWhatARuleKeeps(t *testing.T) {
	t.Parallel()
	m := open(t, newSchema())
	at := m.publish("x", "1", "x", "2", "x", "3")
	messages, last, err := m.History(t.Context(), "x", topic.Rule{History: 2, Age: time.Hour})
	require.NoError(t, err)
	require.Equal(t, at[2], last)
	require.Equal(t, at[1:], []topic.Position{messages[0].Position, messages[1].Position})
	require.Len(t, m.fed, 3, "they have come before History returns")
	require.Equal(t, []string{"x 1 1", "x 2 2", "x 3 3"}, m.next(3))
	_, last, err = m.History(t.Context(), "y", topic.Rule{History: 2, Age: time.Hour})
	require.NoError(t, err)
	require.Zero(t, last.Offset)
	require.NotEqual(t, at[0].Epoch, last.Epoch)
	require.Equal(t, last.Epoch, m.publish("y", "1")[0].Epoch)
}

// A transaction that becomes visible after later ones is not missed.
func TestVisibleLate(t *testing.T) {
	t.Parallel()
	m := open(t, newSchema())
	m.publish("late", "1", "x", "1")
	tx, err := m.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), fmt.Sprintf(`INSERT INTO %[1]q.message (topic, number, kind, tag, retain, data)
		SELECT id, 2, 0, 0, false, '2' FROM %[1]q.topic WHERE name = 'late'`, m.schema))
	require.NoError(t, err)
	m.publish("x", "2")
	require.Equal(t, []string{"late 1 1", "x 1 1", "x 2 2"}, m.next(3))
	require.NoError(t, tx.Commit(t.Context()))
	m.publish("x", "3")
	require.Equal(t, []string{"late 2 2", "x 3 3"}, m.next(2))
}

// What a transaction publishes comes when it has committed, and keeps nobody from publishing to the same topic.
func TestPublishIn(t *testing.T) {
	t.Parallel()
	m := open(t, newSchema())
	tx, err := m.Pool().Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.PublishIn(t.Context(), tx, topic.Publication{Topic: "x", Data: []byte("in")}, topic.Publication{Topic: "y"}))
	m.publish("x", "1")
	require.Equal(t, []string{"x 1 1"}, m.next(1))
	require.NoError(t, tx.Commit(t.Context()))
	m.Hint()
	require.Equal(t, []string{"x 2 in", "y 1 "}, m.next(2))
}

func change(name string, kind topic.Kind, id string) topic.Change {
	return topic.Change{Topic: name, Kind: kind, Member: topic.Member{ID: id, Info: []byte(id + "!")}}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	a, b := open(t, schema), open(t, schema)
	says := func(m *machine, changes ...topic.Change) { require.NoError(t, m.Change(t.Context(), changes)) }
	says(a, change("x", topic.Joined, "eve"), change("x", topic.Joined, "bob"))
	says(b, change("x", topic.Joined, "eve"))
	says(a, change("x", topic.Left, "eve"), change("x", topic.Left, "bob"), change("x", topic.Left, "nobody"))
	want := []string{"$presence/x: eve has joined, eve!", "$presence/x: bob has joined, bob!", "$presence/x: bob has left, bob!"}
	require.Equal(t, want, a.next(3))
	members := func() []topic.Member {
		all, err := a.Members(t.Context(), "x")
		require.NoError(t, err)
		return all
	}
	require.Equal(t, []topic.Member{{ID: "eve", Info: []byte("eve!")}}, members())

	// b is not seen for long: its members leave. When it is back they join again.
	says(a, change("y", topic.Joined, "ann"))
	a.do(`UPDATE daimon_topics.machine SET seen = seen - interval '16 s' WHERE id = $1`, b.Machine())
	require.NoError(t, a.Upkeep(t.Context()))
	require.Equal(t, []string{"$presence/y: ann has joined, ann!", "$presence/x: eve has left, eve!"}, a.next(2))
	require.Empty(t, members())
	says(b, change("x", topic.Joined, "eve")) // it does not know that it is gone
	require.NoError(t, b.Upkeep(t.Context()))
	require.Equal(t, []string{"$presence/x: eve has joined, eve!"}, a.next(1))
	require.NoError(t, a.Upkeep(t.Context()))
	require.Len(t, members(), 1)
}

func TestRetention(t *testing.T) {
	t.Parallel()
	m := open(t, newSchema(), topic.Rule{Filter: "kept/#", History: 2, Age: time.Hour})
	retained := func(name, data string) {
		_, err := m.Publish(t.Context(), []topic.Publication{{Topic: name, Data: []byte(data), Retain: true}})
		require.NoError(t, err)
	}
	retained("r", "old")
	retained("r", "new")
	retained("none", "old")
	retained("none", "")
	m.publish("kept/a", "1", "kept/a", "2", "kept/a", "3", "kept/b", "1", "kept/b", "2", "x", "1")
	age := func(by, what string) {
		m.do(`UPDATE daimon_topics.message SET at = at - $1::interval WHERE topic IN (SELECT id FROM daimon_topics.topic WHERE name LIKE $2)`, by, what)
	}
	left := func() (all []string) {
		require.NoError(t, m.Upkeep(t.Context()))
		rows, err := m.Pool().Query(t.Context(), fmt.Sprintf(`SELECT concat_ws(' ', name, number) FROM %[1]q.message AS m JOIN %[1]q.topic AS t ON t.id = m.topic
			ORDER BY seq`, m.schema))
		require.NoError(t, err)
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return all
	}
	require.Len(t, left(), 10, "all are kept for a minute")
	age("2 min", "%")
	age("1 hour", "kept/b")
	require.Equal(t, []string{"r 2", "none 2", "kept/a 2", "kept/a 3"}, left())
	age("1 day", "%")
	require.Equal(t, []string{"r 2"}, left(), "and nothing says any more that a message is not retained")
	m.do(`UPDATE daimon_topics.topic SET changed = changed - interval '8 days'`)
	left()
	_, last, err := m.History(t.Context(), "r", topic.Rule{})
	require.NoError(t, err)
	require.EqualValues(t, 2, last.Offset)
	_, last, err = m.History(t.Context(), "kept/a", topic.Rule{})
	require.NoError(t, err)
	require.Zero(t, last.Offset, "it was forgotten")

	m.publish("r", "3", "r", "4")
	m.do(`DELETE FROM daimon_topics.message WHERE data = '3'`)
	messages, _, err := m.History(t.Context(), "r", topic.Rule{History: 10, Age: 1000 * time.Hour})
	require.NoError(t, err)
	require.Len(t, messages, 1, "the retained one is before a gap")

	late := open(t, m.schema)
	require.Equal(t, []string{"r 2 new"}, late.next(1))
}
