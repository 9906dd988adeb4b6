package sqlite

import (
	"database/sql"
	"strings"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// prepared are the statements of a Store: list and get for the readers, the others for the writer. $now stands for
// the clock; what belongs to a lease is guarded by it.
type prepared struct {
	get, list *sql.Stmt

	clock, enqueue, due, task, claim         *sql.Stmt
	held, enter, passage, finish, back, beat *sql.Stmt
	exists, suspend, resume, cancel          *sql.Stmt
}

const (
	columns = `id, kind, stage, status, wanted, attempt, failure, due, worker, token, created, changed, data`

	due = `SELECT id, due FROM daimon_task WHERE kind = ?1 AND due <= ?2 ORDER BY due, id LIMIT ?3`

	// lease is the guard, up to the time: ?1 is the task, ?2 the token.
	lease = `id = ?1 AND token = ?2 AND status = 'IN_PROCESSING' AND due > `
)

func (s *Store) prepare() error {
	for _, p := range []struct {
		stmt *(*sql.Stmt)
		db   *sql.DB
		text string
	}{
		{&s.get, s.reader, `SELECT ` + columns + ` FROM daimon_task WHERE id = ?`},
		{&s.list, s.reader, `
			SELECT ` + columns + ` FROM daimon_task
			WHERE id > ?1 AND (?2 = '' OR kind = ?2) AND (?3 = '' OR stage = ?3) AND (?4 = '' OR status = ?4)
				AND (NOT ?5 OR due IS NOT NULL)
			ORDER BY id LIMIT ?6`},

		{&s.clock, s.writer, `SELECT $now`},
		{&s.enqueue, s.writer, `
			INSERT INTO daimon_task (kind, stage, status, data, due, created, changed)
			SELECT ?1, ?2, 'NORMAL', ?3, now, now, now FROM (SELECT $now AS now)`},
		{&s.due, s.writer, due},
		{&s.task, s.writer, `SELECT ` + columns + ` FROM daimon_task WHERE id = ?`},
		{&s.claim, s.writer, `
			UPDATE daimon_task
			SET stage = ?2, attempt = ?3, status = 'IN_PROCESSING', worker = ?4, token = ?5, due = ?6, changed = ?7
			WHERE id = ?1`},

		{&s.held, s.writer, `SELECT wanted FROM daimon_task WHERE ` + lease + `$now`},
		{&s.enter, s.writer, `
			UPDATE daimon_task SET stage = ?3, attempt = ?4, changed = $now
			WHERE ` + lease + `$now AND wanted = ''
			RETURNING ` + columns},
		{&s.passage, s.writer, `
			SELECT stage, status, wanted, due IS NULL, coalesce(due > $now, 0) FROM daimon_task WHERE id = ?1 AND token = ?2`},
		// Not due > $now: since passage has looked, nobody else can have come in.
		{&s.finish, s.writer, `
			UPDATE daimon_task
			SET stage = ?4, attempt = 0, failure = '', changed = $now,
				status = CASE WHEN ?5 THEN 'NORMAL' ELSE status END,
				due = CASE WHEN ?5 THEN NULL ELSE due END,
				data = CASE WHEN ?6 THEN ?7 ELSE data END
			WHERE id = ?1 AND token = ?2 AND stage = ?3 AND status = 'IN_PROCESSING' AND wanted = ''`},
		{&s.back, s.writer, `
			UPDATE daimon_task
			SET stage = ?3, attempt = ?5, failure = ?6, changed = $now, wanted = '',
				status = CASE wanted WHEN 'SUSPEND' THEN 'SUSPENDED' WHEN 'CANCEL' THEN 'CANCELLED' ELSE ?4 END,
				due = CASE WHEN wanted = '' AND ?7 THEN $now + ?8 END
			WHERE ` + lease + `$now
			RETURNING status`},
		{&s.beat, s.writer, `UPDATE daimon_task SET due = ?3 + ?4 WHERE ` + lease + `?3 RETURNING wanted`},

		{&s.exists, s.writer, `SELECT 1 FROM daimon_task WHERE id = ?`},
		{&s.suspend, s.writer, `
			UPDATE daimon_task
			SET changed = $now,
				wanted = CASE status WHEN 'IN_PROCESSING' THEN 'SUSPEND' ELSE '' END,
				due = CASE status WHEN 'IN_PROCESSING' THEN due END,
				status = CASE status WHEN 'IN_PROCESSING' THEN status ELSE 'SUSPENDED' END
			WHERE id = ?1 AND due IS NOT NULL AND wanted = ''`},
		{&s.resume, s.writer, `
			UPDATE daimon_task
			SET changed = $now, wanted = '',
				attempt = CASE status WHEN 'ERROR' THEN 0 ELSE attempt END,
				due = CASE status WHEN 'IN_PROCESSING' THEN due ELSE $now END,
				status = CASE status WHEN 'IN_PROCESSING' THEN status ELSE 'RESUMED' END
			WHERE id = ?1 AND (status = 'SUSPENDED' OR wanted = 'SUSPEND' OR (?2 AND status = 'ERROR'))`},
		{&s.cancel, s.writer, `
			UPDATE daimon_task
			SET changed = $now,
				wanted = CASE status WHEN 'IN_PROCESSING' THEN 'CANCEL' ELSE '' END,
				due = CASE status WHEN 'IN_PROCESSING' THEN due END,
				status = CASE status WHEN 'IN_PROCESSING' THEN status ELSE 'CANCELLED' END
			WHERE id = ?1 AND status <> 'CANCELLED' AND wanted <> 'CANCEL' AND NOT (status = 'NORMAL' AND due IS NULL)`},
	} {
		stmt, err := p.db.Prepare(strings.ReplaceAll(p.text, `$now`, s.now))
		if err != nil {
			return err
		}
		*p.stmt = stmt
	}
	return nil
}

// scan reads a row of columns.
func scan(row interface{ Scan(...any) error }) (t stage.Task, err error) {
	var due sql.NullInt64
	var created, changed int64
	err = row.Scan(&t.ID, &t.Kind, &t.Stage, &t.Status, &t.Wanted, &t.Attempt, &t.Failure, &due, &t.Worker, &t.Token,
		&created, &changed, &t.Data)
	if err != nil {
		return stage.Task{}, err
	}
	if len(t.Data) == 0 {
		t.Data = nil
	}
	if due.Valid {
		t.Due = at(due.Int64)
	}
	t.Created, t.Changed = at(created), at(changed)
	return t, nil
}

// at is a time of the database.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// milliseconds are those of the database, not fewer than d: a lease is not cut short.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
