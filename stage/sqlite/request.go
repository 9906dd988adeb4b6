package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/daimon-go/daimon/stage"
)

// Enqueue adds a task; see stage.Store.
func (s *Store) Enqueue(ctx context.Context, kind, at string, data []byte) (id stage.ID, err error) {
	err = s.write(ctx, "enqueue", func(tx *sql.Tx) error {
		id, err = s.EnqueueIn(tx, kind, at, data)
		return err
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

// EnqueueIn is Enqueue in a transaction of yours, of this store's Update or SQL: the task is there exactly if your rows
// are. at is the first stage of its chain. Engines find it when they poll.
func (s *Store) EnqueueIn(tx *sql.Tx, kind, at string, data []byte) (stage.ID, error) {
	if len(data) == 0 {
		data = nil
	}
	r, err := tx.Stmt(s.enqueue).Exec(kind, at, data)
	if err != nil {
		return 0, err
	}
	id, err := r.LastInsertId()
	return stage.ID(id), err
}

// Suspend takes a task out of work; see stage.Store.
func (s *Store) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return s.request(ctx, "suspend", s.suspend, id)
}

// Resume puts a task back to work; see stage.Store.
func (s *Store) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return s.request(ctx, "resume", s.resume, id, failed)
}

// Cancel ends a task; see stage.Store.
func (s *Store) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	return s.request(ctx, "cancel", s.cancel, id)
}

// request changes a task where it can be changed, and tells whether that was so.
func (s *Store) request(ctx context.Context, what string, change *sql.Stmt, id stage.ID, args ...any) (made bool, err error) {
	err = s.write(ctx, what, func(tx *sql.Tx) error {
		r, err := tx.Stmt(change).Exec(append([]any{id}, args...)...)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if made = n == 1; made || err != nil {
			return err
		}
		return missing(id, tx.Stmt(s.exists).QueryRow(id).Scan(new(int)))
	})
	return made && err == nil, err
}

// missing says that there is no such task when there is no such row.
func missing(id stage.ID, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %d", stage.ErrNotFound, id)
	}
	return err
}

// Get returns a task; see stage.Store. No write holds it up.
func (s *Store) Get(ctx context.Context, id stage.ID) (stage.Task, error) {
	t, err := scan(s.get.QueryRowContext(ctx, id))
	return t, s.failed("get", because(ctx, missing(id, err)))
}

// because is err, and for a ctx that has ended its: the driver may say how it was interrupted, and not why.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// List returns tasks; see stage.Store. No write holds it up. It looks at all tasks behind f.After until it has enough.
func (s *Store) List(ctx context.Context, f stage.Filter) ([]stage.Task, error) {
	found, err := s.query(ctx, f)
	if err != nil {
		return nil, s.failed("list", because(ctx, err))
	}
	return found, nil
}

func (s *Store) query(ctx context.Context, f stage.Filter) (found []stage.Task, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = -1 // all
	}
	rows, err := s.list.QueryContext(ctx, f.After, f.Kind, f.Stage, f.Status, f.Running, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		t, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, rows.Err()
}
