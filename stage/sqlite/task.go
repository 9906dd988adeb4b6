package sqlite

import (
	"database/sql"
	"strconv"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

// statements are prepared: get, claimed, failures and paused for the readers, the others for the writer. Statements
// that read or write many tasks take their numbers as a JSON array.
type statements struct {
	get, claimed, failures, paused *sql.Stmt

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
	brief = `SELECT id, stage, status, wanted, attempt, failure, due, token, at FROM daimon_task ` + itsProgress
	whole = wholeOf + `daimon_task ` + itsProgress

	wholeOf = `
		SELECT id, stage, status, wanted, attempt, failure, due, token, at, kind, worker, created, changed, data, progress FROM `
	itsProgress = `LEFT JOIN daimon_progress ON task = id `

	these = `id IN (SELECT value FROM json_each(?1))`

	// save sets the columns that a rule may have changed: see values.
	save = `
		UPDATE daimon_task SET stage = ?2, status = ?3, wanted = ?4, attempt = ?5, failure = ?6, due = ?7, changed = ?8`
)

func (s *tasks) prepare() error {
	for _, p := range []struct {
		stmt *(*sql.Stmt)
		db   *sql.DB
		text string
	}{
		{&s.get, s.reader, whole + `WHERE id = ?`},
		{&s.claimed, s.reader, claimed},
		{&s.paused, s.reader, `SELECT kind FROM daimon_pause ORDER BY kind`},
		{&s.failures, s.reader, `SELECT stage, attempt, failed, failure FROM daimon_failure WHERE task = ? ORDER BY token`},

		{&s.enqueue, s.writer, `
			INSERT INTO daimon_task (kind, stage, status, data, due, created, changed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)`},
		{&s.key, s.writer, `
			SELECT t.id, t.created FROM daimon_key AS k JOIN daimon_task AS t ON t.id = k.task WHERE k.kind = ?1 AND k.key = ?2`},
		{&s.keep, s.writer, `INSERT OR REPLACE INTO daimon_key (kind, key, task) VALUES (?1, ?2, ?3)`},
		{&s.tick, s.writer, `SELECT last FROM daimon_periodic WHERE name = ?`},
		{&s.ticked, s.writer, `INSERT OR REPLACE INTO daimon_periodic (name, last) VALUES (?1, ?2)`},
		{&s.due, s.writer, due},
		{&s.heads, s.writer, heads},
		{&s.whole, s.writer, whole + `WHERE id = ?`},
		{&s.wholes, s.writer, whole + `WHERE ` + these},
		{&s.brief, s.writer, brief + `WHERE id = ?`},
		{&s.briefs, s.writer, brief + `WHERE ` + these},
		{&s.claim, s.writer, save + `, worker = ?9, token = ?10 WHERE id = ?1`},
		{&s.ticket, s.writer, `
			INSERT OR REPLACE INTO daimon_claim (task, token, engine, number)
			SELECT id, token, ?2, ?3 FROM daimon_task WHERE ` + these},
		{&s.enter, s.writer, `UPDATE daimon_task SET stage = ?2, attempt = ?3, changed = ?4 WHERE id = ?1`},
		// The commit may have ended the transaction and begun another: then the task may have changed meanwhile.
		{&s.finish, s.writer, `
			UPDATE daimon_task SET stage = ?3, status = ?4, attempt = 0, failure = '', due = ?5, changed = ?6,
				data = CASE WHEN ?7 THEN ?8 ELSE data END
			WHERE id = ?1 AND token = ?2 AND wanted = ''`},
		{&s.save, s.writer, save + ` WHERE id = ?1`},
		{&s.note, s.writer, `INSERT OR REPLACE INTO daimon_progress (task, at, progress) VALUES (?1, ?2, ?3)`},
		{&s.forget, s.writer, `DELETE FROM daimon_progress WHERE task = ?1`},
		{&s.pause, s.writer, `INSERT INTO daimon_pause (kind) VALUES (?) ON CONFLICT DO NOTHING`},
		{&s.unpause, s.writer, `DELETE FROM daimon_pause WHERE kind = ?`},
		{&s.fail, s.writer, `
			INSERT INTO daimon_failure (task, token, stage, attempt, failed, failure) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`},
		{&s.trim, s.writer, `
			DELETE FROM daimon_failure WHERE task = ?1 AND token <= (
				SELECT token FROM daimon_failure WHERE task = ?1 ORDER BY token DESC LIMIT 1 OFFSET ?2)`},
		{&s.renew, s.writer, `UPDATE daimon_task SET due = ?2 WHERE ` + these},
	} {
		stmt, err := p.db.Prepare(p.text)
		if err != nil {
			return err
		}
		*p.stmt = stmt
	}
	return nil
}

type row interface{ Scan(...any) error }

// scanDue reads a row of due or heads.
func scanDue(r row) (t store.Task, err error) {
	var due int64
	err = r.Scan(&t.ID, &due, &t.Kind)
	t.Due = at(due)
	return t, err
}

// scanBrief reads a row of brief.
func scanBrief(r row) (t store.Task, err error) {
	err = scan(r, &t)
	return t, err
}

// scanWhole reads a row of whole.
func scanWhole(r row) (t store.Task, err error) {
	var created, changed int64
	if err := scan(r, &t, &t.Kind, &t.Worker, &created, &changed, &t.Data, &t.Progress); err != nil {
		return store.Task{}, err
	}
	for _, data := range []*[]byte{&t.Data, &t.Progress} {
		if len(*data) == 0 {
			*data = nil
		}
	}
	t.Created, t.Changed = at(created), at(changed)
	return t, nil
}

func scan(r row, t *store.Task, more ...any) error {
	var due sql.NullInt64
	var noted sql.NullString
	all := append(make([]any, 0, 9+len(more)),
		&t.ID, &t.Stage, &t.Status, &t.Wanted, &t.Attempt, &t.Failure, &due, &t.Token, &noted)
	err := r.Scan(append(all, more...)...)
	t.ProgressStage = noted.String
	if due.Valid {
		t.Due = at(due.Int64)
	}
	return err
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

// at returns a time of the database.
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
