package sqlite

import (
	"cmp"
	"context"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// List waits for no write.
func (s *tasks) List(ctx context.Context, sel store.Selection) ([]store.Task, error) {
	few, err := s.few(ctx, sel)
	if err != nil {
		return nil, err
	}
	text, args := list(sel, few)
	return read(ctx, s, "list", scanWhole, text, args...)
}

// few reports whether sel asks for tasks that run, or for such as have ended, of which there are so few that an index finds all.
func (s *tasks) few(ctx context.Context, sel store.Selection) (bool, error) {
	text, args := narrow(sel)
	if text == "" {
		return false, nil
	}
	n, err := read(ctx, s, "list", func(r row, n *int) error { return r.Scan(n) },
		`SELECT count(*) FROM (`+text+` LIMIT ?)`, append(args, transition.Many+1)...)
	return err == nil && n[0] <= transition.Many, err
}

// narrow returns a query of the numbers of tasks that run, or of ended tasks, by one index. It is "" if sel does not
// ask for them, or if an index has fewer.
func narrow(sel store.Selection) (text string, args []any) {
	switch running, ended := transition.Narrow(sel); {
	case running:
		text = `SELECT id FROM daimon_task INDEXED BY daimon_task_due WHERE due IS NOT NULL`
		if sel.Kind != "" {
			return text + ` AND ` + fresh + ` IN (0, 1) AND kind = ?`, []any{sel.Kind}
		}
	case ended:
		text = `SELECT id FROM daimon_task INDEXED BY daimon_task_ended WHERE ` + hasEnded
		if sel.Status != "" {
			return text + ` AND status = ?`, []any{string(sel.Status)}
		}
	}
	return text, nil
}

// list returns the statement that finds what sel selects. It names the index: SQLite would choose by what was in the table at
// the time of the last ANALYZE.
func list(sel store.Selection, few bool) (text string, args []any) {
	index, where := ``, `true`
	switch {
	case few: // in the order of their numbers, until there are enough
		text, args = narrow(sel)
		index, where = `NOT INDEXED `, `id IN (`+text+`)`
	case sel.IDs != nil:
		index, where = `NOT INDEXED `, `id IN (SELECT value FROM json_each(?))`
		args = append(args, numbers(sel.IDs, func(id store.ID) store.ID { return id }))
	case sel.Status == store.InProcessing:
		index, where = `INDEXED BY daimon_task_due `, `due IS NOT NULL AND `+fresh+` = 0`
	case sel.Status != store.Normal && sel.Status != "" && sel.Kind != "":
		index, where = `INDEXED BY daimon_task_status_kind `, rare
	case sel.Status != store.Normal && sel.Status != "":
		index, where = `INDEXED BY daimon_task_status `, rare
	case sel.Kind != "":
		index = `INDEXED BY daimon_task_kind `
	default: // and not by the index of ended tasks, of which there are many
		index = `NOT INDEXED `
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
	if sel.Ended {
		text += ` AND ` + hasEnded
	}
	text += ` ORDER BY id`
	if sel.Newest {
		text += ` DESC`
	}
	return text + ` LIMIT ?`, append(args, cmp.Or(max(0, sel.Limit), -1)) // -1: all
}

// rare is the condition of the indexes by status.
const rare = `status NOT IN ('NORMAL', 'IN_PROCESSING')`

// hasEnded is the condition of the index of tasks that have ended.
const hasEnded = `due IS NULL AND status <> 'SUSPENDED'`
