package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

var claimed, enqueued, last, working = enginetest.Claimed, enginetest.Enqueued, enginetest.Last, enginetest.Working

// withReports returns a store with a table of the user.
func withReports(t testing.TB, cfg sqlite.Config) (s *sqlite.Store, path string) {
	t.Helper()
	path = newPath(t)
	s = open(t, path, cfg)
	require.NoError(t, s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`CREATE TABLE report (task INTEGER NOT NULL REFERENCES daimon_task (id), body TEXT NOT NULL) STRICT`)
		return err
	}))
	return s, path
}

func insert(tx *sql.Tx, id store.ID) error {
	_, err := tx.Exec(`INSERT INTO report (task, body) VALUES (?, 'done')`, id)
	return err
}

func TestCommit(t *testing.T) {
	s, path := withReports(t, sqlite.Config{})
	other := open(t, path, sqlite.Config{})
	enginetest.Commit(t, s, other, func(_ context.Context, tx store.Tx, id store.ID) error { return insert(sqlite.Tx(tx), id) },
		func(id store.ID) int { return count(t, other.DB(), `report WHERE task = ?`, id) })
	intact(t, s.DB())
}

// TestCommitEnds has commits that do what is not theirs to do: they get an error, and nothing has changed.
func TestCommitEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(tx *sql.Tx)
	}{
		{"Commit", func(tx *sql.Tx) { require.Error(t, tx.Commit()) }},
		{"ROLLBACK and more", func(tx *sql.Tx) {
			_, err := tx.Exec(`ROLLBACK`)
			require.NoError(t, err)
			_, err = tx.Exec(`INSERT INTO report (task, body) VALUES (1, 'by itself')`)
			require.Error(t, err)
		}},
		{"COMMIT and BEGIN", func(tx *sql.Tx) {
			_, err := tx.Exec(`COMMIT`)
			require.Error(t, err)
			_, err = tx.Exec(`BEGIN; INSERT INTO report (task, body) VALUES (1, 'by itself'); COMMIT`)
			require.Error(t, err)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, _ := withReports(t, sqlite.Config{})
			l := claimed(t, s, time.Hour)
			before, err := s.Get(t.Context(), l.Task)
			require.NoError(t, err)
			err = s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error {
				tx.SetData([]byte("lost"))
				require.NoError(t, insert(sqlite.Tx(tx), l.Task))
				row.end(sqlite.Tx(tx))
				return nil
			})
			require.ErrorContains(t, err, "the function that was to write in the transaction has ended it, and nothing has changed")
			require.True(t, errors.Is(err, store.ErrPermanent))
			err = s.Update(t.Context(), func(tx *sql.Tx) error {
				require.NoError(t, insert(tx, l.Task))
				row.end(tx)
				return nil
			})
			require.ErrorContains(t, err, "the function that was to write in the transaction has ended it, and nothing has changed")
			after, err := s.Get(t.Context(), l.Task)
			require.NoError(t, err)
			require.Equal(t, before, after)
			require.Zero(t, count(t, s.DB(), `report`))

			require.NoError(t, s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error { return insert(sqlite.Tx(tx), l.Task) }))
			require.Equal(t, 1, count(t, s.DB(), `report`), "and the store goes on")
		})
	}

	t.Run("ROLLBACK, a suspension, and BEGIN", func(t *testing.T) {
		s, path := withReports(t, sqlite.Config{})
		other := open(t, path, sqlite.Config{})
		l := claimed(t, s, time.Hour)
		var before store.Task
		require.ErrorIs(t, s.Finish(t.Context(), l, store.Passage{From: "WORKING", To: "DONE"}, func(ctx context.Context, tx store.Tx) error {
			_, err := sqlite.Tx(tx).Exec(`ROLLBACK`)
			require.NoError(t, err)
			ok, err := other.Suspend(t.Context(), l.Task)
			require.NoError(t, err)
			require.True(t, ok)
			before, err = other.Get(t.Context(), l.Task)
			require.NoError(t, err)
			_, err = sqlite.Tx(tx).Exec(`BEGIN IMMEDIATE`)
			return err
		}), store.ErrPermanent)
		after, err := other.Get(t.Context(), l.Task)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})

	t.Run("a rule that is broken in the end", func(t *testing.T) {
		s, _ := withReports(t, sqlite.Config{})
		require.NoError(t, s.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(`CREATE TABLE page (report INTEGER REFERENCES daimon_task DEFERRABLE INITIALLY DEFERRED)`)
			return err
		}))
		l := claimed(t, s, time.Hour)
		before, err := s.Get(t.Context(), l.Task)
		require.NoError(t, err)
		err = s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error {
			_, err := sqlite.Tx(tx).Exec(`INSERT INTO page (report) VALUES (1000)`)
			return err
		})
		require.ErrorContains(t, err, "FOREIGN KEY")
		require.True(t, errors.Is(err, store.ErrPermanent), "trying again would not mend it")
		after, err := s.Get(t.Context(), l.Task)
		require.NoError(t, err)
		require.Equal(t, before, after)
	})

	t.Run("rows that stay open", func(t *testing.T) {
		s, _ := withReports(t, sqlite.Config{})
		l := claimed(t, s, time.Hour)
		require.NoError(t, s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error {
			rows, err := sqlite.Tx(tx).Query(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 1000`)
			require.NoError(t, err)
			require.True(t, rows.Next())
			require.NoError(t, rows.Err())
			return insert(sqlite.Tx(tx), l.Task)
		}))
		claimed(t, s, time.Hour)
	})
}

// TestCommitOutlivesLease: a commit may take longer than the lease, since no other connection can write meanwhile.
func TestCommitOutlivesLease(t *testing.T) {
	_, path := withReports(t, sqlite.Config{})
	c := &clock{}
	var s, other *sqlite.Store
	for _, one := range []**sqlite.Store{&s, &other} {
		var err error
		*one, err = sqlite.OpenClock(path, sqlite.Config{}, c.now)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, (*one).Close()) })
	}
	l := claimed(t, s, time.Hour)
	require.NoError(t, s.Finish(t.Context(), l, last, func(_ context.Context, tx store.Tx) error {
		c.since.Add(int64(time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := other.Claim(ctx, store.Claim{Kinds: []string{"a"}, Limit: 1, Length: time.Minute})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return insert(sqlite.Tx(tx), l.Task)
	}))
	task, err := other.Get(t.Context(), l.Task)
	require.NoError(t, err)
	require.Equal(t, "DONE", task.Stage)
}

func TestUpdate(t *testing.T) {
	s, _ := withReports(t, sqlite.Config{})
	id := enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED"})
	require.NoError(t, s.Update(t.Context(), func(tx *sql.Tx) error { return insert(tx, id) }))
	require.Equal(t, 1, count(t, s.DB(), `report`))

	refused := errors.New("on purpose")
	require.Equal(t, refused, s.Update(t.Context(), func(tx *sql.Tx) error {
		require.NoError(t, insert(tx, id))
		return refused
	}), "as it is")
	require.Panics(t, func() {
		_ = s.Update(t.Context(), func(tx *sql.Tx) error {
			require.NoError(t, insert(tx, id))
			panic("on purpose")
		})
	})
	require.ErrorContains(t, s.Update(t.Context(), func(tx *sql.Tx) error { return insert(tx, id+1) }), "FOREIGN KEY")
	require.Equal(t, 1, count(t, s.DB(), `report`))
}

// Tasks that are enqueued in a transaction are there with its rows, and only then. A key is free again if that is
// rolled back, and when the task is deleted.
func TestEnqueueIn(t *testing.T) {
	s, _ := withReports(t, sqlite.Config{})
	n := store.NewTask{Kind: "a", Stage: "CREATED", Data: []byte("data"), Key: "k"}
	enqueue := func(end error) (ids []store.ID) {
		require.Equal(t, end, s.Update(t.Context(), func(tx *sql.Tx) (err error) {
			ids, err = s.EnqueueIn(tx, n, store.NewTask{Kind: "b", Stage: "OLD"}, n)
			require.NoError(t, err)
			require.NoError(t, insert(tx, ids[0]))
			return end
		}))
		return ids
	}
	enqueue(errors.New("regretted"))
	require.Zero(t, count(t, s.DB(), `(SELECT 1 FROM daimon_task UNION ALL SELECT 1 FROM report UNION ALL SELECT 1 FROM daimon_key)`))
	ids := enqueue(nil)
	require.Equal(t, 1, count(t, s.DB(), `report`))
	require.Equal(t, ids[0], ids[2])
	require.Equal(t, ids[0], enqueued(t, s, n))
	for i, has := range []store.Task{{Kind: "a", Stage: "CREATED", Data: n.Data}, {Kind: "b", Stage: "OLD"}} {
		x, err := s.Get(t.Context(), ids[i])
		require.NoError(t, err)
		require.True(t, x.Runs())
		require.Equal(t, has, store.Task{Kind: x.Kind, Stage: x.Stage, Data: x.Data})
	}
	do(t, s.Writer(), `DELETE FROM report; DELETE FROM daimon_task WHERE id = ?`, ids[0])
	require.Zero(t, count(t, s.DB(), `daimon_key`))
	require.Greater(t, enqueued(t, s, n), ids[1])
}
