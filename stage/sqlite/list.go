package sqlite

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/daimon-go/daimon/stage"
)

// List waits for no write.
func (s *tasks) List(ctx context.Context, sel stage.Selection) ([]stage.Task, error) {
	var found []stage.Task
	text, args := list(sel)
	rows, err := s.reader.QueryContext(ctx, text, args...)
	if err == nil {
		found, err = appendRows(nil, rows, scanWhole)
	}
	return found, s.failed("list", because(ctx, err))
}

// list returns the statement that finds what sel selects. It names the index: SQLite would choose by what was in the table at
// the time of the last ANALYZE.
func list(sel stage.Selection) (text string, args []any) {
	index, where := ``, `true`
	switch {
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
const rare = `status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED')`
