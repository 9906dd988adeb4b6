package postgres

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage"
)

// Enqueue is one statement, whatever the number of tasks. Engines hear of them shortly after.
func (s *tasks) Enqueue(ctx context.Context, tasks ...stage.NewTask) ([]stage.ID, error) {
	if len(tasks) == 0 {
		return nil, ctx.Err()
	}
	ids, err := collect(ctx, s.pool, pgx.RowTo[stage.ID], s.sql.enqueue, s.added(tasks, nil)...)
	if err == nil {
		s.announce(different(tasks))
	}
	return ids, s.failed(ctx, "enqueue", err)
}

// EnqueueIn does what Enqueue does, in a transaction of yours: the tasks are there exactly if your rows are. Engines hear of
// them when it is committed. In a Commit, use it with [Tx].
func (s *Store) EnqueueIn(ctx context.Context, tx pgx.Tx, tasks ...stage.NewTask) ([]stage.ID, error) {
	if len(tasks) == 0 {
		return nil, ctx.Err()
	}
	rows, err := tx.Query(ctx, s.sql.enqueue, s.added(tasks, different(tasks))...)
	if err != nil {
		return nil, s.failed(ctx, "enqueue", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[stage.ID])
	return ids, s.failed(ctx, "enqueue", err)
}

// EnqueueInSQL is EnqueueIn for a transaction of database/sql, of any driver for PostgreSQL. It is a statement for each task.
func (s *Store) EnqueueInSQL(ctx context.Context, tx *sql.Tx, tasks ...stage.NewTask) ([]stage.ID, error) {
	ids := make([]stage.ID, len(tasks))
	for i, t := range tasks {
		err := tx.QueryRowContext(ctx, s.sql.enqueueOne, t.Kind, t.Stage, t.Data, s.schema, microseconds(t.After), at(t)).Scan(&ids[i])
		if err != nil {
			return nil, s.failed(ctx, "enqueue", err)
		}
	}
	return ids, ctx.Err()
}

// added returns the arguments of enqueue. It notifies of the kinds when it is committed.
func (s *tasks) added(tasks []stage.NewTask, notified []string) []any {
	n := len(tasks)
	kinds, stages, data := make([]string, n), make([]string, n), make([][]byte, n)
	after, when := make([]int64, n), make([]*time.Time, n)
	for i, t := range tasks {
		kinds[i], stages[i], data[i], after[i], when[i] = t.Kind, t.Stage, t.Data, microseconds(t.After), at(t)
	}
	return []any{kinds, stages, data, s.schema, notified, after, when}
}

// at returns t.At, rounded up as microseconds does, or nil if it is not set.
func at(t stage.NewTask) *time.Time {
	if t.At.IsZero() {
		return nil
	}
	when := t.At.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	return &when
}

// different returns the kinds of the tasks, each once.
func different(tasks []stage.NewTask) (kinds []string) {
	for _, t := range tasks {
		if len(kinds) == 0 || kinds[len(kinds)-1] != t.Kind { // tasks of a kind often come together
			kinds = append(kinds, t.Kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
