package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

var claimed, enqueued, last, working = enginetest.Claimed, enginetest.Enqueued, enginetest.Last, enginetest.Working

// withReports returns a store with a table of the user.
func withReports(t testing.TB) (s *postgres.Store, table string) {
	t.Helper()
	s = open(t, newConfig(t))
	table = s.Schema() + ".report"
	do(t, s, `CREATE TABLE `+table+` (task bigint PRIMARY KEY REFERENCES `+s.Schema()+`.task DEFERRABLE INITIALLY DEFERRED)`)
	return s, table
}

func TestCommit(t *testing.T) {
	s, table := withReports(t)
	enginetest.Commit(t, s, s, func(ctx context.Context, tx store.Tx, id store.ID) error {
		_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO `+table+` VALUES ($1)`, id)
		return err
	}, func(id store.ID) int { return count(t, s, table+` WHERE task = $1`, id) })
	require.Eventually(t, func() bool { return s.Pool().Stat().AcquiredConns() == 0 }, 2*time.Minute, time.Millisecond)
}

// TestCommitWrong has commits that do what they must not, or what the server refuses. In the end the lease is as good as
// before. What passes is marked, so that the Commit is called again: it is not the task's fault.
func TestCommitWrong(t *testing.T) {
	s, table := withReports(t)
	exec := func(ctx context.Context, tx store.Tx, sql string) error {
		_, err := postgres.Tx(tx).Exec(ctx, sql)
		return err
	}
	ignore := func(error) {}
	raises := func(code string) store.Commit {
		return func(ctx context.Context, tx store.Tx) error {
			return exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '`+code+`'; END $$`)
		}
	}
	const lost = `SELECT pg_terminate_backend(pg_backend_pid())`
	// What was broken: if the server had ended a transaction because it heard nothing, the task failed for good.
	// Perhaps the process stood still, or the network.
	stands := func(then func(ctx context.Context, tx store.Tx) error) store.Commit {
		return func(ctx context.Context, tx store.Tx) error {
			require.NoError(t, exec(ctx, tx, `SET LOCAL idle_in_transaction_session_timeout = 20`))
			pid := postgres.Tx(tx).Conn().PgConn().PID()
			require.Eventually(t, func() bool { return count(t, s, `pg_stat_activity WHERE pid = $1`, pid) == 0 },
				2*time.Minute, 5*time.Millisecond)
			return then(ctx, tx)
		}
	}
	selects := func(ctx context.Context, tx store.Tx) error { return exec(ctx, tx, `SELECT 1`) }
	for _, row := range []struct {
		name   string
		commit store.Commit
		says   string
		is     error // nil: an attempt that is tried again
	}{
		{"Commit", func(ctx context.Context, tx store.Tx) error {
			require.ErrorIs(t, postgres.Tx(tx).Commit(ctx), store.ErrPermanent)
			return nil
		}, "has ended the transaction", store.ErrPermanent},
		{"ROLLBACK and BEGIN", func(ctx context.Context, tx store.Tx) error {
			require.NoError(t, exec(ctx, tx, `ROLLBACK`))
			return exec(ctx, tx, `BEGIN`)
		}, "has ended the transaction", store.ErrPermanent},
		{"a statement that fails", func(ctx context.Context, tx store.Tx) error { return exec(ctx, tx, `SELECT 1 / 0`) },
			"division by zero", nil},
		{"a statement that fails, and is passed over", func(ctx context.Context, tx store.Tx) error {
			ignore(exec(ctx, tx, `INSERT INTO `+table+` VALUES (NULL)`))
			ignore(exec(ctx, tx, `SELECT 1`))
			return nil
		}, "null value in column", store.ErrPermanent},
		{"a deadlock that is passed over", func(ctx context.Context, tx store.Tx) error {
			ignore(exec(ctx, tx, `DO $$ BEGIN RAISE EXCEPTION 'a deadlock' USING ERRCODE = '40P01'; END $$`))
			return nil
		}, "a deadlock", nil},
		{"a cancelled statement that is passed over", func(ctx context.Context, tx store.Tx) error {
			ignore(raises("57014")(ctx, tx))
			return nil
		}, "57014", nil},
		{"rows that are left open", func(ctx context.Context, tx store.Tx) error {
			_, err := postgres.Tx(tx).Query(ctx, `SELECT generate_series(1, 10)`)
			return err
		}, "left rows of a query open", store.ErrPermanent},
		{"a deferred constraint", func(ctx context.Context, tx store.Tx) error {
			return exec(ctx, tx, `INSERT INTO `+table+` VALUES (-5)`)
		}, "violates foreign key constraint", store.ErrPermanent},
		{"a deadlock", raises("40P01"), "x", store.ErrUnavailable},
		{"a serialization failure", raises("40001"), "x", store.ErrUnavailable},
		{"too many connections", raises("53300"), "x", store.ErrUnavailable},
		{"nothing can be written", raises("25006"), "25006", store.ErrUnavailable},
		{"an internal error", raises("XX000"), "XX000", nil},
		{"a connection that is lost", func(ctx context.Context, tx store.Tx) error { return exec(ctx, tx, lost) },
			"terminating connection", store.ErrUnavailable},
		{"a connection that is lost, and a permanent error", func(ctx context.Context, tx store.Tx) error {
			ignore(exec(ctx, tx, lost))
			return stage.Permanent(errors.New("for good"))
		}, "for good", store.ErrPermanent},
		{"it stands still, and then does nothing", stands(func(context.Context, store.Tx) error { return nil }), "", nil},
		{"it stands still, and then passes over an error", stands(func(ctx context.Context, tx store.Tx) error {
			require.Error(t, selects(ctx, tx))
			return nil
		}), "", nil},
		{"it stands still, and then returns an error", stands(selects), "", store.ErrUnavailable},
		{"a context of its own", func(ctx context.Context, tx store.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			return exec(ctx, tx, `SELECT pg_sleep(600)`)
		}, "deadline exceeded", nil},
		{"a statement_timeout of its own", func(ctx context.Context, tx store.Tx) error {
			return exec(ctx, tx, `SET LOCAL statement_timeout = 20; SELECT pg_sleep(600)`)
		}, "statement timeout", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := claimed(t, s, time.Hour)
			before, err := s.Get(t.Context(), l.Task)
			require.NoError(t, err)
			err = s.Finish(t.Context(), l, last, row.commit)
			require.ErrorContains(t, err, row.says)
			require.Equal(t, row.is == store.ErrPermanent, errors.Is(err, store.ErrPermanent), "%v", err)
			require.Equal(t, row.is == store.ErrUnavailable, errors.Is(err, store.ErrUnavailable), "%v", err)
			require.LessOrEqual(t, strings.Count(err.Error(), store.ErrUnavailable.Error()), 1, "%v", err)
			after, err := s.Get(t.Context(), l.Task)
			require.NoError(t, err)
			require.Equal(t, before, after)
			require.Zero(t, count(t, s, table))
			require.NoError(t, s.Finish(t.Context(), l, last, func(context.Context, store.Tx) error { return nil }))
		})
	}
}

// Transactions in a transaction are allowed: a part of a Commit may fail.
func TestSavepoint(t *testing.T) {
	s, table := withReports(t)
	l := claimed(t, s, time.Hour)
	require.NoError(t, s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error {
		err := pgx.BeginFunc(ctx, postgres.Tx(tx), func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT 1 / 0`)
			return err
		})
		require.Error(t, err)
		_, err = postgres.Tx(tx).Exec(ctx, `INSERT INTO `+table+` VALUES ($1)`, l.Task)
		return err
	}))
	require.Equal(t, 1, count(t, s, table))
}

// A task that was committed late, or was lost, is found although claims have gone on.
func TestLateAndLost(t *testing.T) {
	s := open(t, newConfig(t))
	tx, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	late, err := s.EnqueueIn(t.Context(), tx, store.NewTask{Kind: "a", Stage: "CREATED"})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `UPDATE `+s.Schema()+`.task SET due = due - interval '1 h' WHERE id = $1`, late[0])
	require.NoError(t, err)
	lost := claimed(t, s, time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	found := map[store.ID]bool{}
	require.Eventually(t, func() bool {
		tasks, err := s.Claim(t.Context(), store.Claim{Kinds: []string{"a"}, Limit: 1, Length: time.Minute})
		require.NoError(t, err)
		for _, task := range tasks {
			found[task.ID] = true
		}
		return found[late[0]] && found[lost.Task]
	}, 2*time.Minute, 5*time.Millisecond)
}

// A clock that was ahead does not keep claims from new tasks.
func TestClaimsGoBackWithTheClock(t *testing.T) {
	now := time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)
	require.Equal(t, now.Add(-time.Second), postgres.Since(now.Add(time.Hour), now))
}

// TestFinishRefused has one stage, with a name that no database keeps, finish at the moment of others: these finish.
func TestFinishRefused(t *testing.T) {
	s := open(t, newConfig(t))
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range 30 {
		l := claimed(t, s, time.Hour)
		all.Go(func() {
			p := last
			if i%5 == 0 {
				p.To = "DO\x00NE"
			}
			<-begin
			err := s.Finish(t.Context(), l, p, nil)
			assert.Equal(t, p != last, err != nil, "%v", err)
			assert.Equal(t, p != last, errors.Is(err, store.ErrPermanent), "%v", err)
		})
	}
	close(begin)
	all.Wait()
}

// TestFinishLate has a clock that goes on by a second whenever it is read. So the lease ends between any two statements: the
// rows of the Commit are there exactly when the stage has ended.
func TestFinishLate(t *testing.T) {
	cfg := newConfig(t)
	admin := open(t, cfg)
	do(t, admin, strings.ReplaceAll(`
		CREATE TABLE its.report (task bigint);
		CREATE SEQUENCE its.tick;
		CREATE FUNCTION its.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS
			$$ SELECT timestamptz '2020-01-01Z' + nextval('its.tick') * interval '1 s' $$`, "its.", admin.Schema()+"."))
	s, err := postgres.OpenClock(t.Context(), cfg, admin.Schema()+".clock()")
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	outcomes := map[bool]int{}
	for seconds := range 12 {
		l := claimed(t, s, time.Duration(seconds+1)*time.Second)
		err := s.Finish(t.Context(), l, last, func(ctx context.Context, tx store.Tx) error {
			_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO `+admin.Schema()+`.report VALUES ($1)`, l.Task)
			return err
		})
		if err != nil {
			require.ErrorIs(t, err, store.ErrLeaseLost)
		}
		outcomes[err == nil]++
		done := count(t, s, admin.Schema()+`.task WHERE id = $1 AND stage = 'DONE'`, l.Task)
		rows := count(t, s, admin.Schema()+`.report WHERE task = $1`, l.Task)
		require.Equal(t, []bool{err == nil, err == nil}, []bool{done == 1, rows == 1}, "%d s: %v", seconds+1, err)
		do(t, s, `DELETE FROM `+admin.Schema()+`.task`)
	}
	require.Len(t, outcomes, 2)
}
