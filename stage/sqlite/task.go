package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// statements are prepared for the writer. Those that read or write many tasks take their numbers as a JSON array.
type statements struct {
	enqueue, due, heads                       *sql.Stmt
	whole, wholes, brief, briefs              *sql.Stmt
	key, keep, tick, ticked                   *sql.Stmt
	claim, ticket, enter, finish, save, renew *sql.Stmt
	note, forget, fail, trim                  *sql.Stmt
	pause, unpause                            *sql.Stmt
}

const (
	// fresh is transition.Fresh, as the index has it.
	fresh = `(token = 0 AND status = 'NORMAL')`

	// due checks once whether the kind is paused, not for each task. With ?4 in place of +?4 SQLite would prepare it
	// anew each time, to plan for the limit.
	due = `SELECT id, due, kind FROM daimon_task WHERE ` + fresh + ` = ?1 AND kind = ?2 AND due <= ?3
		AND NOT EXISTS (SELECT 1 FROM daimon_pause WHERE kind = ?2) ORDER BY due, id LIMIT +?4`

	// heads has the first due task of each kind. It asks the index for one kind after the other: how many tasks each has does not
	// matter.
	heads = `
		WITH RECURSIVE head (kind) AS (
			SELECT min(kind) FROM daimon_task WHERE ` + fresh + ` = ?1 AND due IS NOT NULL
			UNION ALL
			SELECT (SELECT min(kind) FROM daimon_task WHERE ` + fresh + ` = ?1 AND kind > head.kind AND due IS NOT NULL)
			FROM head WHERE kind IS NOT NULL
		)
		SELECT t.id, t.due, t.kind FROM head JOIN daimon_task AS t ON t.id = (
			SELECT id FROM daimon_task WHERE ` + fresh + ` = ?1 AND kind = head.kind AND due <= ?2 ORDER BY due, id LIMIT 1)`

	// claimed reads all tasks in the index that are not fresh and not due. If SQLite had the choice, it would look at
	// the whole table in databases that have seen ANALYZE.
	claimed = wholeOf + `daimon_task INDEXED BY daimon_task_due ` + itsProgress + `
		WHERE ` + fresh + ` = 0 AND due > ?3 AND status = 'IN_PROCESSING' AND EXISTS (
			SELECT 1 FROM daimon_claim AS c
			WHERE c.task = daimon_task.id AND c.token = daimon_task.token AND c.engine = ?1 AND c.number < ?2)
		ORDER BY id`

	// brief has the columns that the rules of a transition need, and whole has all columns of a task.
	brief = `SELECT id, stage, status, wanted, attempt, failure, due, token, coalesce(at, '') FROM daimon_task ` + itsProgress
	whole = wholeOf + `daimon_task ` + itsProgress

	wholeOf = `
		SELECT id, stage, status, wanted, attempt, failure, due, token, coalesce(at, ''), kind, worker, created, changed, data, progress FROM `
	itsProgress = `LEFT JOIN daimon_progress ON task = id `

	these = `id IN (SELECT value FROM json_each(?1))`

	// save sets the columns that a rule may have changed: see values.
	save = `
		UPDATE daimon_task SET stage = ?2, status = ?3, wanted = ?4, attempt = ?5, failure = ?6, due = ?7, changed = ?8`
)

func (s *tasks) prepare() error {
	for _, p := range []struct {
		stmt *(*sql.Stmt)
		text string
	}{
		{&s.enqueue, `
			INSERT INTO daimon_task (kind, stage, status, data, due, created, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)`},
		{&s.key, `
			SELECT t.id, t.created FROM daimon_key AS k JOIN daimon_task AS t ON t.id = k.task WHERE k.kind = ?1 AND k.key = ?2`},
		{&s.keep, `INSERT OR REPLACE INTO daimon_key (kind, key, task) VALUES (?1, ?2, ?3)`},
		{&s.tick, `SELECT last FROM daimon_periodic WHERE name = ?`},
		{&s.ticked, `INSERT OR REPLACE INTO daimon_periodic (name, last) VALUES (?1, ?2)`},
		{&s.due, due},
		{&s.heads, heads},
		{&s.whole, whole + `WHERE id = ?`},
		{&s.wholes, whole + `WHERE ` + these},
		{&s.brief, brief + `WHERE id = ?`},
		{&s.briefs, brief + `WHERE ` + these},
		{&s.claim, save + `, worker = ?9, token = ?10 WHERE id = ?1`},
		{&s.ticket, `
			INSERT OR REPLACE INTO daimon_claim (task, token, engine, number)
			SELECT id, token, ?2, ?3 FROM daimon_task WHERE ` + these},
		{&s.enter, `UPDATE daimon_task SET stage = ?2, attempt = ?3, changed = ?4 WHERE id = ?1`},
		// The commit may have ended the transaction and begun another: then the task may have changed meanwhile.
		{&s.finish, `
			UPDATE daimon_task SET stage = ?3, status = ?4, attempt = 0, failure = '', due = ?5, changed = ?6,
				data = CASE WHEN ?7 THEN ?8 ELSE data END
			WHERE id = ?1 AND token = ?2 AND wanted = ''`},
		{&s.save, save + ` WHERE id = ?1`},
		{&s.note, `INSERT OR REPLACE INTO daimon_progress (task, at, progress) VALUES (?1, ?2, ?3)`},
		{&s.forget, `DELETE FROM daimon_progress WHERE task = ?1`},
		{&s.pause, `INSERT INTO daimon_pause (kind) VALUES (?) ON CONFLICT DO NOTHING`},
		{&s.unpause, `DELETE FROM daimon_pause WHERE kind = ?`},
		{&s.fail, `
			INSERT INTO daimon_failure (task, token, stage, attempt, failed, failure) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`},
		{&s.trim, `
			DELETE FROM daimon_failure WHERE task = ?1 AND token <= (
				SELECT token FROM daimon_failure WHERE task = ?1 ORDER BY token DESC LIMIT 1 OFFSET ?2)`},
		{&s.renew, `UPDATE daimon_task SET due = ?2 WHERE ` + these},
	} {
		stmt, err := s.writer.Prepare(p.text)
		if err != nil {
			return err
		}
		*p.stmt = stmt
	}
	return nil
}

type row interface{ Scan(...any) error }

// moment reads a time, which may be NULL.
type moment time.Time

func (m *moment) Scan(value any) error {
	if ms, ok := value.(int64); ok {
		*m = moment(at(ms))
	}
	return nil
}

func scanDue(r row, t *store.Task) error { return r.Scan(&t.ID, (*moment)(&t.Due), &t.Kind) }

func scanBrief(r row, t *store.Task) error { return scan(r, t) }

func scanWhole(r row, t *store.Task) error {
	err := scan(r, t, &t.Kind, &t.Worker, (*moment)(&t.Created), (*moment)(&t.Changed), &t.Data, &t.Progress)
	transition.Scanned(t)
	return err
}

func scan(r row, t *store.Task, more ...any) error {
	all := append(make([]any, 0, 9+len(more)),
		&t.ID, &t.Stage, &t.Status, &t.Wanted, &t.Attempt, &t.Failure, (*moment)(&t.Due), &t.Token, &t.ProgressStage)
	return r.Scan(append(all, more...)...)
}

// one returns what scan makes of a row, or nil if there is none.
func one[T any](r *sql.Row, scan func(row, *T) error) (*T, error) {
	v := new(T)
	err := scan(r, v)
	if err == nil {
		return v, nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return nil, err
}

// each appends what scan makes of each of the rows of a query, and closes them.
func each[T any](all []T, rows *sql.Rows, err error, scan func(row, *T) error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// read returns what scan makes of each of the rows that a query of the readers has. It waits for no write.
func read[T any](ctx context.Context, s *tasks, what string, scan func(row, *T) error, query string, args ...any) ([]T, error) {
	rows, err := s.reader.QueryContext(ctx, query, args...)
	all, err := each(nil, rows, err, scan)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // between two rows the driver only says that it was interrupted
	}
	return all, s.failed(what, err)
}

// values returns the arguments of save, with room for some more.
func values(t *store.Task) []any {
	return append(make([]any, 0, 10), t.ID, t.Stage, string(t.Status), string(t.Wanted), t.Attempt, t.Failure, ending(t), t.Changed.UnixMilli())
}

// ending returns the column due of a task.
func ending(t *store.Task) any {
	if t.Runs() {
		return milliseconds(t.Due)
	}
	return nil
}

func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// milliseconds returns t as the database has it, rounded up, so that no lease is cut short.
func milliseconds(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// numbers returns them as a JSON array.
func numbers[T any](of []T, id func(T) store.ID) string {
	text := []byte{'['}
	for i, one := range of {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, int64(id(one)), 10)
	}
	return string(append(text, ']'))
}
