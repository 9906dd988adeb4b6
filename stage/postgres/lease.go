package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

func (s *tasks) read(ctx context.Context, what, sql string, args ...any) ([]store.Task, error) {
	all, err := collect(ctx, s.pool, scanned, sql, args...)
	return all, s.failed(ctx, what, err)
}

func scanned(r pgx.CollectableRow) (store.Task, error) { return scanTask(r) }

// indexesOnly is for the transaction of a statement. The server keeps its plan, perhaps from a time when the table was small
// enough to be read whole, and would read it whole ever after.
const indexesOnly = `SELECT set_config('enable_seqscan', 'off', true)`

type batches interface {
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// collect returns what scan makes of each row of a query. The query is one message and one transaction.
func collect[T any](ctx context.Context, on batches, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	return collectWith(ctx, on, indexesOnly, scan, sql, args...)
}

// collectWith is collect with other settings for the transaction than indexesOnly.
func collectWith[T any](ctx context.Context, on batches, settings string, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var b pgx.Batch
	b.Queue(settings)
	b.Queue(sql, args...)
	results := on.SendBatch(ctx, &b)
	defer func() { err = cmp.Or(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T(nil), rows, scan)
}

// Enter is one statement. If that does not find the row, or finds it locked, a transaction finds out why.
func (s *tasks) Enter(ctx context.Context, l store.Lease, at string, attempt int) (store.Task, error) {
	entered, err := s.read(ctx, "enter", s.sql.enter, l.Task, l.Token, at, attempt)
	if err != nil {
		return store.Task{}, err
	}
	if len(entered) == 1 {
		return entered[0], nil
	}
	var t store.Task
	err = s.change(ctx, "enter", l.Task, func(held *store.Task, now time.Time) (func(*pgx.Batch), error) {
		err := transition.Enter(held, l, at, attempt, now)
		if err == nil {
			t = *held
		}
		return nil, err
	})
	return t, err
}

// Return is a transaction of three messages.
func (s *tasks) Return(ctx context.Context, l store.Lease, r store.Return) (status store.Status, err error) {
	err = s.change(ctx, "return", l.Task, func(t *store.Task, now time.Time) (func(*pgx.Batch), error) {
		noted := transition.Notes(t, r.Progress)
		f, failed := transition.Failed(t, r, now)
		if err := transition.Return(t, l, r, now); err != nil {
			return nil, err
		}
		status = t.Status
		return func(b *pgx.Batch) {
			if noted {
				b.Queue(s.sql.note, t.ID, t.Progress, t.ProgressStage)
			}
			if failed {
				b.Queue(s.sql.fail, t.ID, t.Token, f.Stage, f.Attempt, f.Time, f.Text, transition.MaxFailures)
			}
		}, nil
	})
	if err != nil {
		return "", err
	}
	return status, nil
}

// A rule is a rule of package transition. t is nil if there is no such task. more, unless it is nil, adds further
// statements to the transaction.
type rule func(t *store.Task, now time.Time) (more func(*pgx.Batch), err error)

// change applies a rule to a task in a transaction of three messages, and writes the task unless the rule answers with an
// error, which change returns as it is.
func (s *tasks) change(ctx context.Context, what string, id store.ID, apply rule) error {
	var refused error
	err := s.locked(ctx, id, store.Lease{}, nil, func(tx pgx.Tx, t *store.Task, now time.Time) error {
		more, err := apply(t, now)
		if err != nil {
			refused = err
			return err
		}
		b := &pgx.Batch{}
		b.Queue(s.sql.save, values(t)...)
		if more != nil {
			more(b)
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if refused != nil {
		return refused
	}
	return s.failed(ctx, what, err)
}

// locked calls do in a transaction that has locked a task, unless there is none, and commits it if do returns nil. more
// adds statements to the first message, after the one that locks. l marks the transaction as the one that finishes a
// stage.
func (s *tasks) locked(ctx context.Context, id store.ID, l store.Lease, more func(*pgx.Batch), do func(pgx.Tx, *store.Task, time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	wait, mark := patience(ctx), fmt.Sprintf("%d/%d", l.Task, l.Token)
	var t *store.Task
	var now time.Time
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted, CommitQuery: commitQuery(mark)})
	b.Queue(s.sql.lock, id, fmt.Sprint(wait.Milliseconds()), mark).QueryRow(func(row pgx.Row) error {
		found, err := scanTask(row, &now)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err == nil:
			t = &found
		}
		return err
	})
	if more != nil {
		more(b)
	}
	begun := conn.SendBatch(ctx, b)
	tx := begun.Tx()
	defer func() { // even if do panics; after a Commit it does nothing
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = tx.Rollback(ctx) // otherwise the connection is closed
	}()
	if err := begun.Close(); err != nil {
		return waited(ctx, wait, "another call has been changing the task", err)
	}
	if err := do(tx, t, now.UTC()); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// waited makes a deadline of an error that says that a call has waited for a lock until its patience was over.
func waited(ctx context.Context, patience time.Duration, forWhat string, err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if _, bounded := ctx.Deadline(); !ok || !bounded || e.Code != "55P03" { // lock_timeout
		return err
	}
	return fmt.Errorf("%w: for %v %s: %w", context.DeadlineExceeded, patience, forWhat, err)
}

// scanTask reads a row of columns, and further columns after them.
func scanTask(row pgx.Row, more ...any) (t store.Task, err error) {
	var due *time.Time
	all := append(make([]any, 0, 15+len(more)), &t.ID, &t.Kind, &t.Stage, &t.Status, &t.Wanted, &t.Data, &t.Attempt, &t.Failure,
		&due, &t.Worker, &t.Token, &t.Created, &t.Changed, &t.Progress, &t.ProgressStage)
	if err := row.Scan(append(all, more...)...); err != nil {
		return store.Task{}, err
	}
	if due != nil {
		t.Due = *due
	}
	transition.Scanned(&t)
	return t, nil
}

// values returns the arguments of save. A task in processing has no due there, and keeps the end of its lease.
func values(t *store.Task) []any {
	var due *time.Time
	if t.Runs() && t.Status != store.InProcessing {
		due = &t.Due
	}
	return []any{t.ID, t.Stage, string(t.Status), string(t.Wanted), t.Attempt, t.Failure, due, t.Changed}
}

// microseconds returns d as the database has it, rounded up, so that no lease is cut short.
func microseconds(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}
