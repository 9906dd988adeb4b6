package postgres_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
)

// TestRandomThatCounts runs random histories on schemas that count.
func TestRandomThatCounts(t *testing.T) {
	t.Parallel()
	storetest.Random(t, tier.Choose(1, 1, 5), func(t *testing.T) storetest.Harness {
		cfg := newConfig(t)
		cfg.Counts = true
		return harness(t, cfg)
	})
}

// TestCountsOfASchema has a schema with tasks, which begins to count, and tasks that are changed by other programs.
func TestCountsOfASchema(t *testing.T) {
	cfg := newConfig(t)
	without := open(t, cfg)
	for range 3 {
		enqueued(t, without, store.NewTask{Kind: "a", Stage: "CREATED"})
	}
	want := func(n int, status store.Status) []store.Count {
		return []store.Count{{Kind: "a", Stage: "CREATED", Status: status, N: n}}
	}
	counting := cfg
	counting.Counts = true
	s, again := open(t, counting), open(t, counting)
	later := open(t, cfg)
	table := s.Schema() + `.task`
	for _, step := range []struct {
		text string
		want []store.Count
	}{
		{`SELECT 1`, want(3, store.Normal)},
		{`DELETE FROM ` + table + ` WHERE id = 1`, want(2, store.Normal)},
		{`UPDATE ` + table + ` SET status = 'CANCELLED', due = NULL`, want(2, store.Canceled)},
		{`UPDATE ` + table + ` SET changed = now()`, want(2, store.Canceled)},
		{`SELECT ` + s.Schema() + `.count_together()`, want(2, store.Canceled)},
		{`TRUNCATE ` + table + ` CASCADE`, nil},
		{`INSERT INTO ` + table + ` (kind, stage, created, changed) VALUES ('a', 'CREATED', now(), now())`, want(1, store.Normal)},
	} {
		do(t, s, step.text)
		for _, s := range []*postgres.Store{without, s, again, later} {
			counts, err := s.Counts(t.Context())
			require.NoError(t, err)
			require.Equal(t, step.want, counts, step.text)
		}
	}
}

// TestCountsTogether has stores put rows together while others add some, and while a transaction that did so stays open.
func TestCountsTogether(t *testing.T) {
	cfg := newConfig(t)
	cfg.Counts = true
	s := open(t, cfg)
	together := `SELECT ` + s.Schema() + `.count_together()`
	const each, both = 50, 2
	var all sync.WaitGroup
	for range both {
		all.Go(func() {
			for range each {
				if _, err := s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"}); err != nil {
					t.Error(err)
				}
				if _, err := s.Pool().Exec(t.Context(), together); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	counts := func(n int) {
		t.Helper()
		got, err := s.Counts(t.Context())
		require.NoError(t, err)
		require.Equal(t, []store.Count{{Kind: "a", Stage: "CREATED", Status: store.Normal, N: n}}, got)
	}
	counts(both * each)
	tx, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), together)
	require.NoError(t, err)
	do(t, s, together) // waits for nothing
	enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED"})
	counts(both*each + 1)
	require.NoError(t, tx.Commit(t.Context()))
	counts(both*each + 1)
	do(t, s, together)
	counts(both*each + 1)
	require.Equal(t, 1, count(t, s, s.Schema()+`.count`))

	claimed, err := s.Claim(t.Context(), store.Claim{Kinds: []string{"a"}, Limit: 50, Length: time.Hour})
	require.NoError(t, err)
	rows := count(t, s, s.Schema()+`.count`)
	var renewals []store.Renewal
	for _, task := range claimed {
		renewals = append(renewals, store.Renewal{Lease: task.Lease()})
	}
	_, err = s.Heartbeat(t.Context(), renewals, time.Hour)
	require.NoError(t, err)
	require.LessOrEqual(t, count(t, s, s.Schema()+`.count`), rows, "a heartbeat is not counted")
}
