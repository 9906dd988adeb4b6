package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Enqueue is one statement, whatever the number of tasks. Engines hear of them shortly after. With keys, it waits for other
// transactions that enqueue with the same ones.
func (s *tasks) Enqueue(ctx context.Context, tasks ...store.NewTask) (ids []store.ID, err error) {
	if len(tasks) == 0 {
		return nil, ctx.Err()
	}
	distinct, places, err := transition.Distinct(tasks)
	if err != nil {
		return nil, s.failed(ctx, "enqueue", err)
	}
	hints := hintsOf(tasks, transition.Enqueuer(ctx))
	now, later := s.enter(hints)
	if places == nil {
		ids, err = collect(ctx, s.pool, pgx.RowTo[store.ID], s.sql.enqueue, s.added(tasks, now)...)
	} else {
		ids, err = s.enqueueUnique(ctx, distinct, now)
	}
	if err != nil {
		s.leave(nil) // nothing was enqueued, or nobody knows: engines poll as well
		return nil, s.failed(ctx, "enqueue", err)
	}
	s.leave(later)
	return transition.Spread(ids, places), nil
}

// enqueueUnique enqueues tasks of which some have keys, each once. The server ends a wait before ctx ends.
func (s *tasks) enqueueUnique(ctx context.Context, tasks []store.NewTask, notified []string) (ids []store.ID, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	wait := patience(ctx)
	b := &pgx.Batch{}
	b.Queue(`SELECT set_config('lock_timeout', $1, true)`, fmt.Sprint(wait.Milliseconds()))
	b.Queue(s.sql.unique, s.addedUnique(tasks, notified)...).Query(func(rows pgx.Rows) (err error) {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[store.ID])
		return err
	})
	return ids, waited(ctx, wait, "another call has been enqueuing with the same key", s.pool.SendBatch(ctx, b).Close())
}

// EnqueueIn adds tasks as Enqueue does, in a transaction of yours: the tasks are added exactly if your rows are (an
// outbox). Engines hear of them when it is committed. In a Commit, use it with [Tx].
//
// A task with a key keeps other transactions from enqueuing with that key until yours ends. Two transactions that enqueue
// the same keys in several calls, in different orders, deadlock: PostgreSQL makes one of them fail.
func (s *Store) EnqueueIn(ctx context.Context, tx pgx.Tx, tasks ...store.NewTask) ([]store.ID, error) {
	ids, err := s.insert(ctx, tx, tasks)
	return ids, s.failed(ctx, "enqueue", err)
}

// insert enqueues tasks in a transaction, which notifies of their kinds.
func (s *tasks) insert(ctx context.Context, tx pgx.Tx, tasks []store.NewTask) ([]store.ID, error) {
	if len(tasks) == 0 {
		return nil, ctx.Err()
	}
	distinct, places, err := transition.Distinct(tasks)
	if err != nil {
		return nil, err
	}
	text, args := s.sql.enqueue, s.added
	if places != nil {
		text, args = s.sql.unique, s.addedUnique
	}
	rows, err := tx.Query(ctx, text, args(distinct, hintsOf(tasks, 0))...)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[store.ID])
	if err != nil {
		return nil, err
	}
	return transition.Spread(ids, places), nil
}

// EnqueueInSQL is EnqueueIn for a transaction of database/sql, of any driver for PostgreSQL. It is two statements for each task.
func (s *Store) EnqueueInSQL(ctx context.Context, tx *sql.Tx, tasks ...store.NewTask) ([]store.ID, error) {
	distinct, places, err := transition.Distinct(tasks)
	if err != nil {
		return nil, s.failed(ctx, "enqueue", err)
	}
	ids, err := s.insertSQL(ctx, tx, distinct)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, s.failed(ctx, "enqueue", err)
	}
	return transition.Spread(ids, places), nil
}

// insertSQL draws numbers in the order of the tasks, and enqueues in that of their keys, as unique does.
func (s *tasks) insertSQL(ctx context.Context, tx *sql.Tx, tasks []store.NewTask) ([]store.ID, error) {
	ids, order := make([]store.ID, len(tasks)), make([]int, len(tasks))
	for i := range tasks {
		order[i] = i
		if err := tx.QueryRowContext(ctx, `SELECT nextval($1::text::regclass)`, s.sequence()).Scan(&ids[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(order, func(i, k int) int {
		return cmp.Or(cmp.Compare(tasks[i].Kind, tasks[k].Kind), cmp.Compare(tasks[i].Key, tasks[k].Key))
	})
	for _, i := range order {
		t := tasks[i]
		err := tx.QueryRowContext(ctx, s.sql.uniqueOne, t.Kind, t.Stage, t.Data, s.schema, microseconds(t.After), at(t),
			t.Key, microseconds(t.Within), ids[i]).Scan(&ids[i])
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// added returns the arguments of enqueue. Hints arrive when it is committed.
func (s *tasks) added(tasks []store.NewTask, notified []string) []any {
	n := len(tasks)
	kinds, stages, data := make([]string, n), make([]string, n), make([][]byte, n)
	after, when := make([]int64, n), make([]*time.Time, n)
	for i, t := range tasks {
		kinds[i], stages[i], data[i], after[i], when[i] = t.Kind, t.Stage, t.Data, microseconds(t.After), at(t)
	}
	return []any{kinds, stages, data, s.schema, notified, after, when}
}

func (s *tasks) addedUnique(tasks []store.NewTask, notified []string) []any {
	keys, within := make([]string, len(tasks)), make([]int64, len(tasks))
	for i, t := range tasks {
		keys[i], within[i] = t.Key, microseconds(t.Within)
	}
	return append(s.added(tasks, notified), keys, within, s.sequence())
}

func (s *tasks) sequence() string { return pgx.Identifier{s.schema, "task_id_seq"}.Sanitize() }

// at returns t.At, rounded up as microseconds does, or nil if it is not set.
func at(t store.NewTask) *time.Time {
	when := transition.At(t)
	if when.IsZero() {
		return nil
	}
	when = when.Add(time.Microsecond - 1).Truncate(time.Microsecond)
	return &when
}

// hintsOf returns what is to be notified of when an engine enqueues the tasks, or anybody else: then it is 0.
func hintsOf(tasks []store.NewTask, engine int64) (hints []string) {
	last := ""
	for i, t := range tasks {
		if i > 0 && t.Kind == last { // tasks of a kind often come together
			continue
		}
		if last = t.Kind; engine == 0 {
			hints = append(hints, hintOfKind(t.Kind))
		} else {
			hints = append(hints, hintOfEnqueued(t.Kind, engine))
		}
	}
	slices.Sort(hints)
	return slices.Compact(hints)
}
