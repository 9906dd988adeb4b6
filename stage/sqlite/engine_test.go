package sqlite_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/enginetest"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// TestEngine gives engines a file, and the test a second connection to it.
func TestEngine(t *testing.T) {
	enginetest.Run(t, func(t *testing.T) stage.Store {
		path := newPath(t)
		cfg := sqlite.Config{Relaxed: true}
		return enginetest.Pair{Store: open(t, path, cfg), Other: open(t, path, cfg)}
	})
}

func TestOpenDoesNotWaitForWriters(t *testing.T) {
	path := newPath(t)
	s := open(t, path, sqlite.Config{})
	id, err := s.Enqueue(t.Context(), "job", "NEW", nil)
	require.NoError(t, err)
	other := raw(t, path)
	do(t, other, `BEGIN IMMEDIATE`)
	begun := time.Now()
	second := open(t, path, sqlite.Config{Busy: time.Minute})
	_, err = second.Get(t.Context(), id)
	require.NoError(t, err)
	require.Less(t, time.Since(begun), 30*time.Second)
	do(t, other, `ROLLBACK`)
}

// A task that is enqueued in a transaction is there with its rows, and only then.
func TestEnqueueIn(t *testing.T) {
	s := open(t, newPath(t), sqlite.Config{})
	makeTables(t, s)
	regretted := errors.New("regretted")
	for _, want := range []error{regretted, nil} {
		var id stage.ID
		err := s.Update(t.Context(), func(tx *sql.Tx) (err error) {
			if id, err = s.EnqueueIn(tx, "job", "NEW", []byte("data")); err != nil {
				return err
			}
			if _, err = tx.Exec(insertion, id, "with it"); err != nil {
				return err
			}
			return want
		})
		require.ErrorIs(t, err, want)
		x, err := s.Get(t.Context(), id)
		if want != nil {
			require.ErrorIs(t, err, stage.ErrNotFound)
			require.Zero(t, count(t, s.DB(), "step"))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "NEW", x.Stage)
		require.True(t, x.Runs())
		require.Equal(t, []byte("data"), x.Data)
		require.Equal(t, 1, count(t, s.DB(), "step WHERE task = ?", id))
	}
}

// A stage may enqueue tasks: they are there when it has finished.
func TestEnqueueInACommit(t *testing.T) {
	s := open(t, newPath(t), sqlite.Config{})
	require.NoError(t, s.Finish(t.Context(), claimed(t, s, time.Minute), last, func(tx stage.Tx) error {
		_, err := s.EnqueueIn(sqlite.SQL(tx), "job", "NEW", nil)
		return err
	}))
	left, err := s.List(t.Context(), stage.Selection{Kind: "job", Running: true})
	require.NoError(t, err)
	require.Len(t, left, 1)
}
