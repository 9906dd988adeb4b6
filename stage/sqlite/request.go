package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Suspend costs one transaction, and waits for other writes; so do Resume and Cancel.
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
	return transition.Asked(s.change(ctx, what, id, func(_ *sql.Tx, t *store.Task, now time.Time) error {
		return transition.Ask(t, id, rule, now)
	}))
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
	return read(ctx, s, "paused", func(r row, kind *string) error { return r.Scan(kind) }, `SELECT kind FROM daimon_pause ORDER BY kind`)
}

// Get waits for no write.
func (s *tasks) Get(ctx context.Context, id store.ID) (store.Task, error) {
	found, err := read(ctx, s, "get", scanWhole, whole+`WHERE id = ?`, id)
	return transition.Only(id, found, err)
}

// Failures waits for no write.
func (s *tasks) Failures(ctx context.Context, id store.ID) ([]store.Failure, error) {
	all, err := read(ctx, s, "failures", func(r row, f *store.Failure) error {
		return r.Scan(&f.Stage, &f.Attempt, (*moment)(&f.Time), &f.Text)
	}, `SELECT stage, attempt, failed, failure FROM daimon_failure WHERE task = ? ORDER BY token`, id)
	if err == nil && len(all) == 0 {
		_, err = s.Get(ctx, id)
	}
	return all, err
}

const purge = `DELETE FROM daimon_task WHERE id IN (
	SELECT id FROM daimon_task INDEXED BY daimon_task_ended
	WHERE ` + hasEnded + ` AND status = ?1 AND changed <= ?2
	ORDER BY changed, id LIMIT ?3)`

// Purge is one transaction, for which other writes wait: limit should not be above some thousand.
func (s *tasks) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	var n int64
	err := s.write(ctx, "purge", func(tx *sql.Tx) error {
		r, err := tx.Exec(purge, string(status), s.now().Add(-age).UnixMilli(), max(0, limit))
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	return committed(int(n), err)
}
