package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Suspend costs one transaction, and waits for other writes.
func (s *tasks) Suspend(ctx context.Context, id store.ID) (bool, error) {
	return s.request(ctx, "suspend", id, transition.Suspend)
}

// Resume costs one transaction, and waits for other writes.
func (s *tasks) Resume(ctx context.Context, id store.ID, failed bool) (bool, error) {
	return s.request(ctx, "resume", id, transition.Resume(failed))
}

// Cancel costs one transaction, and waits for other writes.
func (s *tasks) Cancel(ctx context.Context, id store.ID) (bool, error) {
	return s.request(ctx, "cancel", id, transition.Cancel)
}

// errUnchanged ends the transaction of a request that makes no difference.
var errUnchanged = errors.New("nothing has changed")

func (s *tasks) request(ctx context.Context, what string, id store.ID, rule transition.Request) (bool, error) {
	err := s.change(ctx, what, id, func(t *store.Task, now time.Time) (func(*sql.Tx) error, error) {
		switch {
		case t == nil:
			return nil, transition.NotFound(id)
		case !rule(t, now):
			return nil, errUnchanged
		}
		return nil, nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return err == nil, err
}

// SetPaused waits for a claim that another process is making: there is one writer at a time.
func (s *tasks) SetPaused(ctx context.Context, kind string, paused bool) (changed bool, err error) {
	stmt := s.unpause
	if paused {
		stmt = s.pause
	}
	err = s.write(ctx, "pause", func(tx *sql.Tx) error {
		r, err := tx.Stmt(stmt).Exec(kind)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		changed = n == 1
		return err
	})
	return committed(changed, err)
}

// Paused waits for no write.
func (s *tasks) Paused(ctx context.Context) ([]string, error) {
	kinds, err := s.readPaused(ctx)
	return kinds, s.failed("paused", because(ctx, err))
}

func (s *tasks) readPaused(ctx context.Context) (kinds []string, _ error) {
	rows, err := s.paused.QueryContext(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var kind string
		if err := rows.Scan(&kind); err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	return kinds, rows.Err()
}

// Get waits for no write.
func (s *tasks) Get(ctx context.Context, id store.ID) (store.Task, error) {
	t, err := scanWhole(s.get.QueryRowContext(ctx, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = transition.NotFound(id)
	}
	return t, s.failed("get", because(ctx, err))
}

// because returns the error of ctx if that has ended: between two rows the driver only says that it was interrupted.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Failures waits for no write.
func (s *tasks) Failures(ctx context.Context, id store.ID) (all []store.Failure, err error) {
	rows, err := s.failures.QueryContext(ctx, id)
	if err == nil {
		all, err = appendRows(nil, rows, scanFailure)
	}
	if err == nil && len(all) == 0 {
		_, err = s.Get(ctx, id)
		return nil, err
	}
	return all, s.failed("failures", because(ctx, err))
}

// scanFailure reads a row of failures.
func scanFailure(r row) (f store.Failure, err error) {
	var failed int64
	err = r.Scan(&f.Stage, &f.Attempt, &failed, &f.Text)
	f.Time = at(failed)
	return f, err
}
