package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

// TestContextsThatEnd ends contexts in the middle of everything: each call is done or not done, and the store goes on.
func TestContextsThatEnd(t *testing.T) {
	s, path := withReports(t, sqlite.Config{Relaxed: true})
	other := open(t, path, sqlite.Config{})
	r := rand.New(rand.NewPCG(1, 0))
	for i := range tier.Choose(100, 100, 400) {
		l := claimed(t, s, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(r.IntN(1000))*time.Microsecond, cancel)
		var err error
		switch i % 4 {
		case 0:
			_, err = s.Suspend(ctx, l.Task)
		case 1:
			_, err = s.List(ctx, store.Selection{})
		case 2:
			err = s.Update(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT INTO report (task, body)
					WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT ?, 'row ' || i FROM n`, l.Task)
				return err
			})
			if n := count(t, s.DB(), `report WHERE task = ?`, l.Task); err == nil {
				require.Equal(t, 2000, n)
			} else {
				require.Zero(t, n)
			}
		default:
			err = s.Finish(ctx, l, last, func(ctx context.Context, tx store.Tx) error {
				_, err := sqlite.Tx(tx).ExecContext(ctx, `INSERT INTO report (task, body) VALUES (?, 'done')`, l.Task)
				return err
			})
			task, getErr := other.Get(t.Context(), l.Task)
			require.NoError(t, getErr)
			require.Equal(t, err == nil, task.Stage == "DONE")
			require.Equal(t, err == nil, count(t, s.DB(), `report WHERE task = ?`, l.Task) == 1)
		}
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		timer.Stop()
		cancel()
	}
	_, err := other.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
	require.NoError(t, err, "no lock was left")
	intact(t, s.DB())
}

// endsUnnoticed is a context that has ended, which the driver does not notice, so that it fails for another reason.
type endsUnnoticed struct{ context.Context }

func (endsUnnoticed) Done() <-chan struct{} { return nil }
func (endsUnnoticed) Err() error            { return context.Canceled }

// The driver has errors of its own for a query in which its context has ended.
func TestAfterAContextHasEndedAnErrorIsThatOfTheContext(t *testing.T) {
	path := newPath(t)
	s := open(t, path, sqlite.Config{})
	id := enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED"})
	reads := map[string]func(context.Context) error{
		"get":  func(ctx context.Context) error { _, err := s.Get(ctx, id); return err },
		"list": func(ctx context.Context) error { _, err := s.List(ctx, store.Selection{}); return err },
		"claimed": func(ctx context.Context) error {
			_, err := s.Claimed(ctx, store.Ticket{Engine: 1, Number: 1})
			return err
		},
	}
	for name, read := range reads {
		require.NoError(t, read(endsUnnoticed{t.Context()}), name)
	}
	do(t, raw(t, path), `DROP TABLE daimon_task`)
	for name, read := range reads {
		require.ErrorContains(t, read(t.Context()), "no such table", name)
		require.EqualError(t, read(endsUnnoticed{t.Context()}), "sqlite: "+name+" in "+path+": context canceled")
	}
}

// TestLocked has another connection write for longer than Busy.
func TestLocked(t *testing.T) {
	path := newPath(t)
	const busy = 50 * time.Millisecond
	s := open(t, path, sqlite.Config{Busy: busy})
	id := enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED"})
	db := raw(t, path)
	do(t, db, `BEGIN IMMEDIATE`)
	begun := time.Now()
	_, err := s.Suspend(t.Context(), id)
	require.ErrorContains(t, err, "sqlite: suspend in "+path+": for 50ms another process has been writing: ")
	require.ErrorContains(t, err, "SQLITE_BUSY")
	require.GreaterOrEqual(t, time.Since(begun), busy)

	task, err := s.Get(t.Context(), id)
	require.NoError(t, err, "reads do not wait")
	require.Equal(t, store.Normal, task.Status)
	_, err = s.Claimed(t.Context(), store.Ticket{Engine: 1, Number: 1})
	require.NoError(t, err, "nor does an engine that looks for its claims")
	second, err := sqlite.Open(path, sqlite.Config{Busy: 1})
	require.NoError(t, err, "nor does Open")
	require.NoError(t, second.Close())
	do(t, db, `COMMIT`)
	made, err := s.Suspend(t.Context(), id)
	require.NoError(t, err)
	require.True(t, made)
}

// A call waits for other writes of this process, and then for one of another process: both together take no longer than
// Busy. The clock is that of synctest.
func TestBothWaitsTogetherTakeBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(path, sqlite.Config{Busy: 10 * time.Second})
		require.NoError(t, err)
		other, err := sqlite.Open(path, sqlite.Config{})
		require.NoError(t, err)
		tx, err := other.Writer().Begin()
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				begun := time.Now()
				_, err := s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
				if err == nil || time.Since(begun) > 11*time.Second {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
			time.Sleep(5 * time.Second)
		}
		all.Wait()
		require.NoError(t, tx.Rollback())
		require.NoError(t, other.Close())
		require.NoError(t, s.Close())
	})
}

// TestFull lets a database have no more pages. An error that is SQLite's own is ErrUnavailable if it comes from a Commit, and
// others are the Commit's. Nothing has changed then, and what needs no room goes on.
func TestFull(t *testing.T) {
	s, _ := withReports(t, sqlite.Config{})
	l := claimed(t, s, time.Hour)
	large := strings.Repeat("x", 100_000)
	full := func(_ context.Context, tx store.Tx) error {
		_, err := sqlite.Tx(tx).Exec(`INSERT INTO report (task, body) VALUES (?, ?)`, l.Task, large)
		return err
	}
	before, err := s.List(t.Context(), store.Selection{})
	require.NoError(t, err)
	for _, row := range []struct {
		name        string
		commit      store.Commit
		unavailable bool
	}{
		{"a full disk", full, true},
		{"a full disk, in other words", func(ctx context.Context, tx store.Tx) error {
			return fmt.Errorf("to write a report: %w", full(ctx, tx))
		}, true},
		{"a full disk, for good", func(ctx context.Context, tx store.Tx) error { return stage.Permanent(full(ctx, tx)) }, false},
		{"a full disk, and more", func(ctx context.Context, tx store.Tx) error {
			_ = full(ctx, tx)
			return full(ctx, tx)
		}, true},
		{"nothing can be written", func(ctx context.Context, tx store.Tx) error {
			_, _ = sqlite.Tx(tx).Exec(`PRAGMA query_only = 1`)
			defer func() { _, _ = sqlite.Tx(tx).Exec(`PRAGMA query_only = 0`) }()
			return full(ctx, tx)
		}, true},
		{"data", func(_ context.Context, tx store.Tx) error { tx.SetData([]byte(large)); return nil }, false},
		{"a broken rule", func(_ context.Context, tx store.Tx) error { return insert(sqlite.Tx(tx), l.Task+1) }, false},
		{"no SQL", func(_ context.Context, tx store.Tx) error { _, err := sqlite.Tx(tx).Exec(`DO`); return err }, false},
		{"something else", func(context.Context, store.Tx) error { return errors.New("on purpose") }, false},
	} {
		var pages int // of the connection, which may be another one after an error
		require.NoError(t, s.Writer().QueryRow(`PRAGMA page_count`).Scan(&pages))
		do(t, s.Writer(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+2))
		var cause error
		err := s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error {
			cause = row.commit(ctx, tx)
			return cause
		})
		require.Error(t, err, row.name)
		require.Equal(t, row.unavailable, errors.Is(err, store.ErrUnavailable), "%s: %v", row.name, err)
		if cause != nil {
			require.ErrorIs(t, err, cause)
		}
		if cause != nil && !row.unavailable {
			require.Equal(t, cause, err, "as it is")
		}
		after, err := s.List(t.Context(), store.Selection{})
		require.NoError(t, err)
		require.Equal(t, before, after, row.name)
		require.Zero(t, count(t, s.DB(), `report`), row.name)
		beats, err := s.Heartbeat(t.Context(), []store.Renewal{{Lease: l}}, time.Hour)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, beats)
		before, err = s.List(t.Context(), store.Selection{})
		require.NoError(t, err)
	}
	do(t, s.Writer(), `PRAGMA max_page_count = 1000000`)
	require.NoError(t, s.Finish(t.Context(), l, last, full))
	require.Equal(t, 1, count(t, s.DB(), `report`))
	intact(t, s.DB())
}
