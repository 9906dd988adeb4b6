package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Suspend is a transaction of three messages, and waits for a Commit of the task that is under way; so do Resume and Cancel.
func (s *tasks) Suspend(ctx context.Context, id store.ID) (bool, error) {
	return s.request(ctx, "suspend", id, transition.Suspend)
}

func (s *tasks) Resume(ctx context.Context, id store.ID, failed bool) (bool, error) {
	return s.request(ctx, "resume", id, transition.Resume(failed))
}

func (s *tasks) Cancel(ctx context.Context, id store.ID) (bool, error) {
	return s.request(ctx, "cancel", id, transition.Cancel)
}

func (s *tasks) request(ctx context.Context, what string, id store.ID, rule transition.Request) (bool, error) {
	return transition.Asked(s.change(ctx, what, id, func(t *store.Task, now time.Time) (func(*pgx.Batch), error) {
		if err := transition.Ask(t, id, rule, now); err != nil {
			return nil, err
		}
		return func(b *pgx.Batch) {
			switch {
			case t.Wanted != "":
				b.Queue(s.sql.notify, s.schema, hintOfRequest(id))
			case t.Status == store.Resumed:
				b.Queue(s.sql.notify, s.schema, hintOfKind(t.Kind))
			}
		}, nil
	}))
}

// SetPaused is one statement. To pause a kind it waits for the claims under way, and claims that come meanwhile wait
// for it.
func (s *tasks) SetPaused(ctx context.Context, kind string, paused bool) (bool, error) {
	text, args := s.sql.unpause, []any{kind, s.schema}
	wait := patience(ctx)
	if paused {
		text, args = s.sql.pause, []any{kind, fmt.Sprint(wait.Milliseconds())}
	}
	changed, err := collect(ctx, s.pool, pgx.RowTo[int], text, args...)
	return err == nil && changed[0] == 1, s.failed(ctx, "pause", waited(ctx, wait, "a claim has been under way", err))
}

// Paused is one statement.
func (s *tasks) Paused(ctx context.Context) ([]string, error) {
	kinds, err := collect(ctx, s.pool, pgx.RowTo[string], s.sql.paused)
	slices.Sort(kinds) // the database may have another order
	return kinds, s.failed(ctx, "paused", err)
}

// Get is one statement, and waits for no row.
func (s *tasks) Get(ctx context.Context, id store.ID) (store.Task, error) {
	found, err := s.read(ctx, "get", s.sql.get, id)
	return transition.Only(id, found, err)
}

// Failures reads a table of its own.
func (s *tasks) Failures(ctx context.Context, id store.ID) ([]store.Failure, error) {
	all, err := collect(ctx, s.pool, func(r pgx.CollectableRow) (f store.Failure, err error) {
		err = r.Scan(&f.Stage, &f.Attempt, &f.Time, &f.Text)
		f.Time = f.Time.UTC()
		return f, err
	}, s.sql.failures, id)
	if err == nil && len(all) == 0 {
		_, err = s.Get(ctx, id)
		return nil, err
	}
	return all[max(0, len(all)-transition.MaxFailures):], s.failed(ctx, "failures", err)
}

const purge = `
	DELETE FROM daimon.task WHERE id = ANY (ARRAY(
		SELECT id FROM daimon.task
		WHERE status = $1 AND ended IS NOT NULL AND ended <= (SELECT clock_timestamp() - $2::bigint * interval '1 microsecond')
		ORDER BY ended, id LIMIT $3 FOR UPDATE SKIP LOCKED
	)) RETURNING id`

// Purge is one statement, and waits for no row.
func (s *tasks) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	ids, err := collectWith(ctx, s.pool, inOrder, pgx.RowTo[store.ID], s.sql.adapted(purge), string(status), microseconds(age), max(0, limit))
	return len(ids), s.failed(ctx, "purge", err)
}
