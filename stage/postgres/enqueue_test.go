package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// A task that is enqueued in a transaction is there with its rows, and only then: in one of pgx and one of database/sql.
func TestEnqueueIn(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `CREATE TABLE `+s.Schema()+`.step (task bigint)`)
	insert := `INSERT INTO ` + s.Schema() + `.step VALUES ($1)`
	regretted := errors.New("regretted")
	at := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	tasks := []stage.NewTask{{Kind: "b", Stage: "NEW", Data: []byte("data"), After: time.Hour}, {Kind: "a", Stage: "NEW", At: at}}
	db := stdlib.OpenDBFromPool(s.Pool())
	defer func() { require.NoError(t, db.Close()) }()
	ways := map[string]func(want error) ([]stage.ID, error){
		"pgx": func(want error) (ids []stage.ID, _ error) {
			return ids, pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) (err error) {
				if ids, err = s.EnqueueIn(t.Context(), tx, tasks...); err != nil {
					return err
				}
				_, err = tx.Exec(t.Context(), insert, ids[0])
				return errors.Join(err, want)
			})
		},
		"database/sql": func(want error) ([]stage.ID, error) {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			ids, err := s.EnqueueInSQL(t.Context(), tx, tasks...)
			require.NoError(t, err)
			_, err = tx.Exec(insert, ids[0])
			require.NoError(t, err)
			if want != nil {
				return ids, want
			}
			return ids, tx.Commit()
		},
	}
	for name, enqueue := range ways {
		ids, err := enqueue(regretted)
		require.ErrorIs(t, err, regretted, name)
		_, err = s.Get(t.Context(), ids[0])
		require.ErrorIs(t, err, stage.ErrNotFound, name)

		ids, err = enqueue(nil)
		require.NoError(t, err, name)
		require.Len(t, ids, 2)
		require.Less(t, ids[0], ids[1])
		for i, id := range ids {
			task, err := s.Get(t.Context(), id)
			require.NoError(t, err)
			due := map[string]time.Time{"b": task.Created.Add(time.Hour), "a": at}[task.Kind]
			require.Equal(t, stage.Task{
				ID: id, Kind: tasks[i].Kind, Stage: "NEW", Status: stage.Normal, Data: tasks[i].Data,
				Due: due, Created: task.Created, Changed: task.Created,
			}, task)
		}
		require.Equal(t, 1, count(t, s, s.Schema()+`.step WHERE task = $1`, ids[0]))
	}
	require.Equal(t, 2, count(t, s, s.Schema()+`.step`))
	var none *sql.Tx
	ids, err := s.EnqueueInSQL(t.Context(), none)
	require.NoError(t, err)
	require.Empty(t, ids)
}

// Tasks with keys in a transaction: in one of pgx and one of database/sql. The key is free again if that is rolled back, and
// when the task is deleted.
func TestEnqueueInWithKeys(t *testing.T) {
	s := open(t, newConfig(t))
	db := stdlib.OpenDBFromPool(s.Pool())
	defer func() { require.NoError(t, db.Close()) }()
	at := time.Date(2100, 1, 1, 0, 0, 0, 1000, time.UTC)
	ways := map[string]func(end bool, tasks ...stage.NewTask) []stage.ID{
		"pgx": func(commit bool, tasks ...stage.NewTask) []stage.ID {
			tx, err := s.Pool().Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			ids, err := s.EnqueueIn(t.Context(), tx, tasks...)
			require.NoError(t, err)
			if commit {
				require.NoError(t, tx.Commit(t.Context()))
			}
			return ids
		},
		"database/sql": func(commit bool, tasks ...stage.NewTask) []stage.ID {
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			ids, err := s.EnqueueInSQL(t.Context(), tx, tasks...)
			require.NoError(t, err)
			if commit {
				require.NoError(t, tx.Commit())
			}
			return ids
		},
	}
	for kind, enqueue := range ways {
		odd := `{"a\b",NULL} 'ü' $1`
		tasks := []stage.NewTask{
			{Kind: kind, Stage: odd, Data: []byte{0, 255, '"'}, Key: odd}, {Kind: kind, Stage: "NEW", At: at},
			{Kind: kind, Stage: "NEW", After: time.Hour, Key: "NULL"}, {Kind: kind, Stage: "NEW", Key: odd},
		}
		ids := enqueue(false, tasks...)
		_, err := s.Get(t.Context(), ids[0])
		require.ErrorIs(t, err, stage.ErrNotFound)
		ids = enqueue(true, tasks...)
		require.Len(t, ids, 4)
		require.Equal(t, ids[0], ids[3])
		require.IsIncreasing(t, ids[:3])
		for i, id := range ids[:3] {
			task, err := s.Get(t.Context(), id)
			require.NoError(t, err)
			due := []time.Time{task.Created, at, task.Created.Add(time.Hour)}[i]
			require.Equal(t, stage.Task{
				ID: id, Kind: kind, Stage: tasks[i].Stage, Status: stage.Normal, Data: tasks[i].Data,
				Due: due, Created: task.Created, Changed: task.Created,
			}, task)
		}
		require.Equal(t, ids[:1], enqueue(true, tasks[0]))
		same, err := s.Enqueue(t.Context(), tasks[0])
		require.NoError(t, err)
		require.Equal(t, ids[:1], same)

		do(t, s, `DELETE FROM `+s.Schema()+`.task WHERE id = $1`, ids[0])
		require.Greater(t, enqueue(true, tasks[0])[0], ids[2])
	}
	var none *sql.Tx
	_, err := s.EnqueueInSQL(t.Context(), none, stage.NewTask{Kind: "a", Key: "a\x00b"})
	require.ErrorContains(t, err, "NUL")
}

// TestKeysAtOnceIn has transactions of pgx and of database/sql enqueue the same keys in different orders. None waits for another
// one in a circle.
func TestKeysAtOnceIn(t *testing.T) {
	s := open(t, newConfig(t))
	db := stdlib.OpenDBFromPool(s.Pool())
	defer func() { require.NoError(t, db.Close()) }()
	keys := strings.Split("a B b Ä Z é _ 10 9 -", " ")
	enqueue := func(i int, tasks []stage.NewTask) (ids []stage.ID, _ error) {
		if i%2 == 0 {
			return ids, pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) (err error) {
				ids, err = s.EnqueueIn(t.Context(), tx, tasks...)
				return err
			})
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback() }()
		if ids, err = s.EnqueueInSQL(t.Context(), tx, tasks...); err != nil {
			return nil, err
		}
		return ids, tx.Commit()
	}
	for round := range 5 {
		var all sync.WaitGroup
		var got [8][]stage.ID
		for i := range got {
			all.Go(func() {
				tasks, places := make([]stage.NewTask, len(keys)), rand.Perm(len(keys))
				for j, place := range places {
					tasks[j] = stage.NewTask{Kind: fmt.Sprint("k", round), Stage: "NEW", Key: keys[place]}
				}
				ids, err := enqueue(i, tasks)
				if assert.NoError(t, err) {
					got[i] = make([]stage.ID, len(keys))
					for j, place := range places {
						got[i][place] = ids[j]
					}
				}
			})
		}
		all.Wait()
		for i := range got {
			require.Equal(t, got[0], got[i])
		}
	}
	require.Equal(t, 5*len(keys), count(t, s, s.Schema()+".task"))
}

// A transaction that has a key keeps another call waiting, which finds its task, or adds one if there is none.
func TestKeyIsWaitedFor(t *testing.T) {
	s := open(t, newConfig(t))
	n := stage.NewTask{Kind: "a", Stage: "NEW", Key: "k"}
	for _, commit := range []bool{false, true} {
		tx, err := s.Pool().Begin(t.Context())
		require.NoError(t, err)
		first, err := s.EnqueueIn(t.Context(), tx, n)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = s.Enqueue(ctx, n)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)

		second := make(chan stage.ID, 1)
		go func() {
			ids, err := s.Enqueue(t.Context(), n)
			if err == nil {
				second <- ids[0]
			}
			close(second)
		}()
		require.Eventually(t, func() bool {
			return count(t, s, `pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%'||$1||'%'`, s.Schema()+`."key"`) == 1
		}, time.Minute, time.Millisecond)
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

// A stage may enqueue tasks: they are there when it has finished.
func TestEnqueueInACommit(t *testing.T) {
	s := open(t, newConfig(t))
	require.NoError(t, s.Finish(t.Context(), claimed(t, s, time.Minute), last, func(ctx context.Context, tx stage.Tx) error {
		_, err := s.EnqueueIn(ctx, postgres.Tx(tx), stage.NewTask{Kind: "job", Stage: "NEW"})
		return err
	}))
	left, err := s.List(t.Context(), stage.Selection{Kind: "job", Running: true})
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// Of two transactions the second is committed first: List with After never sees the first task, and claims find both.
func TestNumbersBecomeVisibleOutOfOrder(t *testing.T) {
	s := open(t, newConfig(t))
	n := stage.NewTask{Kind: "a", Stage: "CREATED"}
	begin := func() (pgx.Tx, stage.ID) {
		tx, err := s.Pool().Begin(t.Context())
		require.NoError(t, err)
		ids, err := s.EnqueueIn(t.Context(), tx, n)
		require.NoError(t, err)
		return tx, ids[0]
	}
	one, first := begin()
	two, second := begin()
	require.Less(t, first, second)
	numbers := func(after stage.ID) (ids []stage.ID) {
		tasks, err := s.List(t.Context(), stage.Selection{After: after})
		require.NoError(t, err)
		for _, task := range tasks {
			ids = append(ids, task.ID)
		}
		return ids
	}
	require.NoError(t, two.Commit(t.Context()))
	require.Equal(t, []stage.ID{second}, numbers(0))
	require.NoError(t, one.Commit(t.Context()))
	require.Empty(t, numbers(second))
	require.Equal(t, []stage.ID{first, second}, numbers(0))

	claimed, err := s.Claim(t.Context(), stage.Claim{Kinds: []string{"a"}, Limit: 10, Length: time.Minute})
	require.NoError(t, err)
	require.Len(t, claimed, 2)
}

func TestEnqueueMany(t *testing.T) {
	s := open(t, newConfig(t))
	tasks := make([]stage.NewTask, 10_000)
	for i := range tasks {
		tasks[i] = stage.NewTask{Kind: fmt.Sprint("k", i%3), Stage: "NEW", Data: fmt.Append(nil, i)}
	}
	ids, err := s.Enqueue(t.Context(), tasks...)
	require.NoError(t, err)
	require.Len(t, ids, len(tasks))
	require.True(t, slices.IsSorted(ids))
	for _, i := range []int{0, 1, 5000, 9999} {
		task, err := s.Get(t.Context(), ids[i])
		require.NoError(t, err)
		require.Equal(t, fmt.Append(nil, i), task.Data)
	}
}
