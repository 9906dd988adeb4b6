package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/store"
)

// Tasks that are enqueued in a transaction, of pgx or of database/sql, are there with its rows, and only then. A key is
// free again if that is rolled back, and when the task is deleted.
func TestEnqueueIn(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `CREATE TABLE `+s.Schema()+`.step (task bigint)`)
	insert := `INSERT INTO ` + s.Schema() + `.step VALUES ($1)`
	db := stdlib.OpenDBFromPool(s.Pool())
	defer func() { require.NoError(t, db.Close()) }()
	ctx := t.Context()
	// Each enqueues tasks, and inserts a row, in a transaction.
	ways := map[string]func(commit bool, tasks ...store.NewTask) ([]store.ID, error){
		"pgx": func(commit bool, tasks ...store.NewTask) ([]store.ID, error) {
			tx, err := s.Pool().Begin(ctx)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(ctx) }()
			ids, err := s.EnqueueIn(ctx, tx, tasks...)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, insert, ids[0])
			if commit {
				err = errors.Join(err, tx.Commit(ctx))
			}
			return ids, err
		},
		"database/sql": func(commit bool, tasks ...store.NewTask) ([]store.ID, error) {
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			ids, err := s.EnqueueInSQL(ctx, tx, tasks...)
			require.NoError(t, err)
			_, err = tx.Exec(insert, ids[0])
			if commit {
				err = errors.Join(err, tx.Commit())
			}
			return ids, err
		},
	}
	at := time.Date(2100, 1, 1, 0, 0, 0, 1000, time.UTC)
	odd := `{"a\b",NULL} 'ü' $1`
	for kind, way := range ways {
		enqueue := func(commit bool, tasks ...store.NewTask) []store.ID {
			ids, err := way(commit, tasks...)
			require.NoError(t, err, kind)
			return ids
		}
		tasks := []store.NewTask{
			{Kind: kind, Stage: odd, Data: []byte{0, 255, '"'}, Key: odd}, {Kind: kind, Stage: "NEW", At: at},
			{Kind: kind, Stage: "NEW", After: time.Hour}, {Kind: kind, Stage: "NEW", Key: odd},
		}
		before := count(t, s, s.Schema()+`.step`)
		ids := enqueue(false, tasks...)
		_, err := s.Get(ctx, ids[0])
		require.ErrorIs(t, err, store.ErrNotFound)
		require.Equal(t, before, count(t, s, s.Schema()+`.step`))
		ids = enqueue(true, tasks...)
		require.Equal(t, before+1, count(t, s, s.Schema()+`.step`))
		require.IsIncreasing(t, ids[:3])
		for i, id := range ids[:3] {
			task, err := s.Get(ctx, id)
			require.NoError(t, err)
			due := []time.Time{task.Created, at, task.Created.Add(time.Hour)}[i]
			require.Equal(t, store.Task{
				ID: id, Kind: kind, Stage: tasks[i].Stage, Status: store.Normal, Data: tasks[i].Data,
				Due: due, Created: task.Created, Changed: task.Created,
			}, task)
		}
		require.Equal(t, ids[0], ids[3])
		require.Equal(t, ids[:1], enqueue(true, tasks[0]))
		do(t, s, `DELETE FROM `+s.Schema()+`.task WHERE id = $1`, ids[0])
		require.Greater(t, enqueue(true, tasks[0])[0], ids[2])
		require.Greater(t, enqueue(true, tasks[2])[0], ids[2], "without a key")
	}
	var none *sql.Tx
	_, err := s.EnqueueInSQL(t.Context(), none, store.NewTask{Kind: "a", Key: "a\x00b"})
	require.ErrorContains(t, err, "NUL")
}

// A transaction that has a key keeps another call waiting, which finds its task, or adds one if there is none.
func TestKeyIsWaitedFor(t *testing.T) {
	s := open(t, newConfig(t))
	n := store.NewTask{Kind: "a", Stage: "NEW", Key: "k"}
	for _, commit := range []bool{false, true} {
		tx, err := s.Pool().Begin(t.Context())
		require.NoError(t, err)
		first, err := s.EnqueueIn(t.Context(), tx, n)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = s.Enqueue(ctx, n)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)

		second := make(chan store.ID, 1)
		go func() {
			ids, err := s.Enqueue(t.Context(), n)
			if err == nil {
				second <- ids[0]
			}
			close(second)
		}()
		require.Eventually(t, func() bool {
			return count(t, s, `pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%'||$1||'%'`, s.Schema()+`."key"`) == 1
		}, 2*time.Minute, time.Millisecond)
		if !commit {
			require.NoError(t, tx.Rollback(t.Context()))
			id := <-second
			require.Greater(t, id, first[0])
			do(t, s, `DELETE FROM `+s.Schema()+`.task`)
			continue
		}
		require.NoError(t, tx.Commit(t.Context()))
		require.Equal(t, first[0], <-second)
	}
	require.Equal(t, 1, count(t, s, s.Schema()+".task"))
}
