package postgres_test

import (
	"testing"
	"time"

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
	require.Equal(t, []string{"x 1 1", "x 2 2", "x 3 3"}, m.next(3), "it has come before History returns")
	_, last, err = m.History(t.Context(), "y", topic.Rule{History: 2, Age: time.Hour})
	require.NoError(t, err)
	require.Zero(t, last.Offset)
	require.NotEqual(t, at[0].Epoch, last.Epoch)
	require.Equal(t, last.Epoch, m.publish("y", "1")[0].Epoch)
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
