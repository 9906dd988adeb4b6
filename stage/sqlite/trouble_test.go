package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// TestContextsThatEnd ends contexts in the middle of everything: each call is done or not done, and the store goes on.
func TestContextsThatEnd(t *testing.T) {
	s, path := withReports(t, sqlite.Config{Relaxed: true})
	other := open(t, path, sqlite.Config{})
	r := rand.New(rand.NewPCG(1, 0))
	done, given := 0, 0
	for i := range tier.Choose(100, 100, 400) {
		l := claimed(t, s, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(r.IntN(1000))*time.Microsecond, cancel)
		var err error
		switch i % 4 {
		case 0:
			_, err = s.Suspend(ctx, l.Task)
		case 1:
			_, err = s.List(ctx, stage.Selection{})
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
			err = s.Finish(ctx, l, last, func(ctx context.Context, tx stage.Tx) error {
				_, err := sqlite.SQL(tx).ExecContext(ctx, `INSERT INTO report (task, body) VALUES (?, 'done')`, l.Task)
				return err
			})
			task, getErr := other.Get(t.Context(), l.Task)
			require.NoError(t, getErr)
			require.Equal(t, err == nil, task.Stage == "DONE")
			require.Equal(t, err == nil, count(t, s.DB(), `report WHERE task = ?`, l.Task) == 1)
		}
		if err == nil {
			done++
		} else {
			require.ErrorIs(t, err, context.Canceled)
			given++
		}
		timer.Stop()
		cancel()
	}
	t.Log("done:", done, "given up:", given)
	require.NotZero(t, done)
	require.NotZero(t, given)
	_, err := other.Enqueue(t.Context(), stage.NewTask{Kind: "a", Stage: "CREATED"})
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
	id := enqueued(t, s, stage.NewTask{Kind: "a", Stage: "CREATED"})
	reads := map[string]func(context.Context) error{
		"get":  func(ctx context.Context) error { _, err := s.Get(ctx, id); return err },
		"list": func(ctx context.Context) error { _, err := s.List(ctx, stage.Selection{}); return err },
		"claimed": func(ctx context.Context) error {
			_, err := s.Claimed(ctx, stage.Ticket{Engine: 1, Number: 1})
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
	const busy = 400 * time.Millisecond
	s := open(t, path, sqlite.Config{Busy: busy})
	id := enqueued(t, s, stage.NewTask{Kind: "a", Stage: "CREATED"})
	db := raw(t, path)
	do(t, db, `BEGIN IMMEDIATE`)

	begun := time.Now()
	_, err := s.Suspend(t.Context(), id)
	require.ErrorContains(t, err, "sqlite: suspend in "+path+": for 400ms another process has been writing: ")
	require.ErrorContains(t, err, "SQLITE_BUSY")
	require.GreaterOrEqual(t, time.Since(begun), busy)
	require.Less(t, time.Since(begun), 5*time.Second)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = s.Cancel(ctx, id)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	begun = time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := s.Suspend(t.Context(), id)
			require.ErrorContains(t, err, "for 400ms another process has been writing")
		})
	}
	all.Wait()
	require.Less(t, time.Since(begun), 19*busy, "they wait together and not one behind the other")

	task, err := s.Get(t.Context(), id)
	require.NoError(t, err, "reads do not wait")
	require.Equal(t, stage.Normal, task.Status)
	_, err = s.Claimed(t.Context(), stage.Ticket{Engine: 1, Number: 1})
	require.NoError(t, err, "nor does an engine that looks for its claims")
	do(t, db, `COMMIT`)
	made, err := s.Suspend(t.Context(), id)
	require.NoError(t, err)
	require.True(t, made)
}

// TestFull lets a database have no more pages.
func TestFull(t *testing.T) {
	s, _ := withReports(t, sqlite.Config{})
	l := claimed(t, s, time.Minute)
	limit := func(more int) { // of the connection, which may be another one after an error
		var pages int
		require.NoError(t, s.Writer().QueryRow(`PRAGMA page_count`).Scan(&pages))
		do(t, s.Writer(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+more))
	}
	large := bytes.Repeat([]byte("x"), 100_000)
	before, err := s.List(t.Context(), stage.Selection{})
	require.NoError(t, err)
	for name, do := range map[string]func() error{
		"enqueue": func() error {
			_, err := s.Enqueue(t.Context(), stage.NewTask{Kind: "a", Stage: "CREATED", Data: large})
			return err
		},
		"finish": func() error {
			return s.Finish(t.Context(), l, last, func(ctx context.Context, tx stage.Tx) error {
				tx.SetData(large)
				return nil
			})
		},
		"commit": func() error {
			return s.Finish(t.Context(), l, last, func(ctx context.Context, tx stage.Tx) error {
				_, err := sqlite.SQL(tx).Exec(`INSERT INTO report (task, body) VALUES (?, ?)`, l.Task, string(large))
				return err
			})
		},
		"a commit that does not care": func() error {
			return s.Finish(t.Context(), l, last, func(ctx context.Context, tx stage.Tx) error {
				_, _ = sqlite.SQL(tx).Exec(`INSERT INTO report (task, body) VALUES (?, ?)`, l.Task, string(large))
				_, err := sqlite.SQL(tx).Exec(`INSERT INTO report (task, body) VALUES (?, ?)`, l.Task, string(large))
				return err
			})
		},
	} {
		limit(2)
		err := do()
		require.ErrorContains(t, err, "full", name)
		require.Equal(t, strings.Contains(name, "commit"), errors.Is(err, stage.ErrUnavailable), name)
		require.False(t, errors.Is(err, stage.ErrPermanent), name)
		after, err := s.List(t.Context(), stage.Selection{})
		require.NoError(t, err, name)
		require.Equal(t, before, after, name)
		require.Zero(t, count(t, s.DB(), `report`), name)
		beats, err := s.Heartbeat(t.Context(), []stage.Renewal{{Lease: l}}, time.Minute)
		require.NoError(t, err, "what needs no room goes on")
		require.Equal(t, []stage.Beat{{Renewed: true}}, beats)
		before, err = s.List(t.Context(), stage.Selection{})
		require.NoError(t, err, name)
	}
	limit(1000)
	require.NoError(t, s.Finish(t.Context(), l, last, func(ctx context.Context, tx stage.Tx) error {
		tx.SetData(large)
		return insert(sqlite.SQL(tx), l.Task)
	}))
	require.Equal(t, 1, count(t, s.DB(), `report`))
	intact(t, s.DB())
}

// TestCommitErrors: errors that are SQLite's own are ErrUnavailable, others are the commit's.
func TestCommitErrors(t *testing.T) {
	s, _ := withReports(t, sqlite.Config{})
	l := claimed(t, s, time.Minute)
	var pages int
	require.NoError(t, s.Writer().QueryRow(`PRAGMA page_count`).Scan(&pages))
	do(t, s.Writer(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+2))
	full := func(ctx context.Context, tx stage.Tx) error {
		_, err := sqlite.SQL(tx).Exec(`INSERT INTO report (task, body) VALUES (?, ?)`, l.Task, strings.Repeat("x", 100_000))
		return err
	}
	for _, row := range []struct {
		name        string
		commit      func(context.Context, stage.Tx) error
		unavailable bool
	}{
		{"a full disk", full, true},
		{"a full disk, in other words", func(ctx context.Context, tx stage.Tx) error {
			return fmt.Errorf("to write a report: %w", full(ctx, tx))
		}, true},
		{"a full disk, for good", func(ctx context.Context, tx stage.Tx) error { return stage.Permanent(full(ctx, tx)) }, false},
		{"a broken rule", func(ctx context.Context, tx stage.Tx) error { return insert(sqlite.SQL(tx), l.Task+1) }, false},
		{"no SQL", func(ctx context.Context, tx stage.Tx) error { _, err := sqlite.SQL(tx).Exec(`DO`); return err }, false},
		{"something else", func(context.Context, stage.Tx) error { return errors.New("on purpose") }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var cause error
			err := s.Finish(t.Context(), l, last, func(ctx context.Context, tx stage.Tx) error {
				cause = row.commit(ctx, tx)
				return cause
			})
			require.Error(t, cause)
			require.ErrorIs(t, err, cause)
			require.Equal(t, row.unavailable, errors.Is(err, stage.ErrUnavailable), err)
			if !row.unavailable {
				require.Equal(t, cause, err, "as it is")
			}
			task, err := s.Get(t.Context(), l.Task)
			require.NoError(t, err)
			require.Equal(t, "WORKING", task.Stage)
		})
	}
	do(t, s.Writer(), `PRAGMA max_page_count = 1000000`)
	require.NoError(t, s.Finish(t.Context(), l, last, full))
	require.Equal(t, 1, count(t, s.DB(), `report`))
}

func init() {
	children["hammer"] = func(path string) error { return hammer(path, 1500*time.Millisecond) }
}

// hammer does everything at once, from 8 goroutines, and returns what is wrong.
func hammer(path string, during time.Duration) error {
	s, err := sqlite.Open(path, sqlite.Config{Busy: 10 * time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	end := time.Now().Add(during)
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() {
			for n := 0; time.Now().Before(end) && errs[i] == nil; n++ {
				errs[i] = hit(s, n)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// hit takes a task or two along their way, with requests between.
func hit(s *sqlite.Store, n int) error {
	ctx := context.Background()
	answer := func(err error) error {
		for _, expected := range []error{stage.ErrLeaseLost, stage.ErrSuspended, stage.ErrCanceled} {
			if errors.Is(err, expected) {
				return nil
			}
		}
		return err
	}
	ids, err := s.Enqueue(ctx, stage.NewTask{Kind: "a", Stage: "CREATED", Data: []byte("data")})
	if err != nil {
		return err
	}
	length := 10 * time.Second
	if n%3 == 0 {
		length = 10 * time.Millisecond // which ends, now and then
	}
	claimed, err := s.Claim(ctx, stage.Claim{
		Kinds: []string{"a", "b"}, Limit: 1 + n%2, Length: length,
		Shows: working,
	})
	if err != nil {
		return err
	}
	for _, t := range claimed {
		if n%5 == 0 {
			if _, err := s.Suspend(ctx, t.ID); err != nil {
				return err
			}
		}
		if _, err := s.Heartbeat(ctx, []stage.Renewal{{Lease: t.Lease()}}, length); err != nil {
			return err
		}
		if n%7 == 0 {
			_, err = s.Return(ctx, t.Lease(), stage.Return{Stage: "CREATED", Status: stage.Normal, Runs: true})
		} else {
			err = s.Finish(ctx, t.Lease(), last, func(ctx context.Context, tx stage.Tx) error {
				_, err := sqlite.SQL(tx).Exec(`INSERT INTO report (task, body) VALUES (?, 'done')`, t.ID)
				return err
			})
		}
		if answer(err) != nil {
			return err
		}
	}
	if n%6 == 0 {
		_, err = s.Cancel(ctx, ids[0])
	} else {
		_, err = s.Resume(ctx, ids[0], true)
	}
	if err != nil {
		return err
	}
	_, err = s.List(ctx, stage.Selection{Limit: 5})
	return err
}

// TestProcesses has two processes do everything at once.
func TestProcesses(t *testing.T) {
	s, path := withReports(t, sqlite.Config{})
	waits := []func() (string, error){startChild(t, "hammer", path), startChild(t, "hammer", path)}
	for _, wait := range waits {
		out, err := wait()
		require.NoError(t, err, out)
		require.Empty(t, out)
	}
	finished := count(t, s.DB(), `daimon_task WHERE stage = 'DONE'`)
	t.Log("finished:", finished)
	require.NotZero(t, finished)
	require.Equal(t, finished, count(t, s.DB(), `report`), "what a stage writes is written once")
	require.Equal(t, finished, count(t, s.DB(), `report JOIN daimon_task ON task = id WHERE stage = 'DONE' AND status = 'NORMAL'`))
	intact(t, s.DB())
}
