package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"

	"github.com/daimon-go/daimon/stage"
)

// List waits for no write.
func (s *tasks) List(ctx context.Context, sel stage.Selection) ([]stage.Task, error) {
	var found []stage.Task
	few, err := s.fewRun(ctx, sel)
	if err == nil {
		var rows *sql.Rows
		text, args := list(sel, few)
		if rows, err = s.reader.QueryContext(ctx, text, args...); err == nil {
			found, err = appendRows(nil, rows, scanWhole)
		}
	}
	return found, s.failed("list", because(ctx, err))
}

// many is how many tasks that run are too many to look at all of them for a page.
const many = 10_000

// fewRun reports whether sel asks for tasks that run, of which there are so few that the index of claims finds them.
func (s *tasks) fewRun(ctx context.Context, sel stage.Selection) (bool, error) {
	if !sel.Running || sel.IDs != nil || sel.Status == stage.InProcessing || sel.Status == stage.Resumed { // all of these run
		return false, nil
	}
	var n int
	text, args := running(sel)
	err := s.reader.QueryRowContext(ctx, `SELECT count(*) FROM (`+text+` LIMIT ?)`, append(args, many+1)...).Scan(&n)
	return n <= many, err
}

// running returns a query of the numbers of tasks that run, which looks only at the index.
func running(sel stage.Selection) (text string, args []any) {
	text = `SELECT id FROM daimon_task INDEXED BY daimon_task_due WHERE due IS NOT NULL`
	if sel.Kind != "" {
		return text + ` AND ` + fresh + ` IN (0, 1) AND kind = ?`, []any{sel.Kind}
	}
	return text, nil
}

// list returns the statement that finds what sel selects. It names the index: SQLite would choose by what was in the table at
// the time of the last ANALYZE.
func list(sel stage.Selection, fewRun bool) (text string, args []any) {
	index, where := ``, `true`
	switch {
	case fewRun: // in the order of their numbers, until there are enough
		text, args = running(sel)
		index, where = `NOT INDEXED `, `id IN (`+text+`)`
	case sel.IDs != nil:
		index, where = `NOT INDEXED `, `id IN (SELECT value FROM json_each(?))`
		numbers, _ := json.Marshal(sel.IDs) // which cannot fail
		args = append(args, string(numbers))
	case sel.Status == stage.InProcessing:
		index, where = `INDEXED BY daimon_task_due `, `due IS NOT NULL AND `+fresh+` = 0`
	case sel.Status != stage.Normal && sel.Status != "" && sel.Kind != "":
		index, where = `INDEXED BY daimon_task_status_kind `, rare
	case sel.Status != stage.Normal && sel.Status != "":
		index, where = `INDEXED BY daimon_task_status `, rare
	case sel.Kind != "":
		index = `INDEXED BY daimon_task_kind `
	}
	text = wholeOf + `daimon_task ` + index + itsProgress + `WHERE ` + where
	and := func(wanted bool, condition string, arg any) {
		if wanted {
			text += ` AND ` + condition
			args = append(args, arg)
		}
	}
	and(true, `id > ?`, sel.After)
	and(sel.Before != 0, `id < ?`, sel.Before)
	and(sel.Kind != "", `kind = ?`, sel.Kind)
	and(sel.Stage != "", `stage = ?`, sel.Stage)
	and(sel.Status != "", `status = ?`, string(sel.Status))
	if sel.Running {
		text += ` AND due IS NOT NULL`
	}
	text += ` ORDER BY id`
	if sel.Newest {
		text += ` DESC`
	}
	return text + ` LIMIT ?`, append(args, cmp.Or(max(0, sel.Limit), -1)) // -1: all
}

// rare is the condition of the indexes by status.
const rare = `status NOT IN ('NORMAL', 'IN_PROCESSING')`
