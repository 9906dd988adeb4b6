package postgres

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// List is one statement, and waits for no row.
func (s *tasks) List(ctx context.Context, sel store.Selection) ([]store.Task, error) {
	few, err := s.few(ctx, sel)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	limit := cmp.Or(max(0, sel.Limit), math.MaxInt)
	args := []any{sel.After, cmp.Or(sel.Before, math.MaxInt64), limit, sel.Kind, sel.Stage, string(sel.Status), sel.Running, sel.Ended}
	if sel.IDs != nil {
		args = append(args, sel.IDs)
	}
	all, err := collectWith(ctx, s.pool, inOrder, scanned, s.list(sel, few), args...)
	return all, s.failed(ctx, "list", err)
}

// inOrder is for the transaction of a list. The server would sort all that is selected if it expects that to be little. Where it
// has to sort nevertheless, that seems so dear now that it would compile the statement; and processes that help would take longer
// to start than the list does.
const inOrder = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true), set_config('jit', 'off', true),
	set_config('max_parallel_workers_per_gather', '0', true)`

// few reports whether sel asks for tasks that run, or for such as have ended, of which there are so few that indexes find all.
func (s *tasks) few(ctx context.Context, sel store.Selection) (bool, error) {
	text, args := countNarrow(sel)
	if text == "" {
		return false, nil
	}
	n, err := collectWith(ctx, s.pool, inOrder, pgx.RowTo[int], s.sql.adapted(text), args...)
	return err == nil && n[0] <= transition.Many, err
}

// countNarrow returns the statement that counts the tasks of narrow, up to one more than transition.Many, or "".
func countNarrow(sel store.Selection) (text string, args []any) {
	those, of := narrow(sel, `id`, `$2`, `$2`)
	if those == "" {
		return "", nil
	}
	return `SELECT count(*) FROM (` + those + ` LIMIT $1) AS those`, append([]any{transition.Many + 1}, of...)
}

// narrow returns a query of what is wanted of tasks that run, or of such as have ended, index by index. It is "" if sel
// does not ask for them, or if an index has fewer. kind and status are parameters, of which it needs at most one: args
// has that.
func narrow(sel store.Selection, what, kind, status string) (text string, args []any) {
	from := `SELECT ` + what + ` FROM daimon.task WHERE `
	switch running, ended := transition.Narrow(sel); {
	case running:
		ofKind := ``
		if sel.Kind != "" {
			ofKind, args = ` AND kind = `+kind, []any{sel.Kind}
		}
		text = `(` + from + `due IS NOT NULL` + ofKind + ` ORDER BY kind, fresh, due, id)
			UNION ALL (` + from + `watch IS NOT NULL` + ofKind + ` ORDER BY kind, watch)`
	case ended:
		ofStatus := ``
		if sel.Status != "" {
			ofStatus, args = ` AND status = `+status, []any{string(sel.Status)}
		}
		text = `(` + from + `ended IS NOT NULL` + ofStatus + ` ORDER BY status, ended, id)`
	}
	return text, args
}

// list returns the statement that finds what sel selects. Its bounds and its order match one index: the planner would
// choose by statistics, which do not know that, for example, all tasks in Error are old; and a plan for any arguments
// does not know which kinds are rare. So a column of that index is in no other condition: the order would be by id
// alone.
func (s *tasks) list(sel store.Selection, few bool) string {
	const (
		ofStage = ` AND ($5 = '' OR stage = $5) AND (NOT $7::bool OR due IS NOT NULL OR until IS NOT NULL)` +
			` AND (NOT $8::bool OR ended IS NOT NULL)`
		ofKind   = ` AND ($4 = '' OR kind = $4)`
		ofStatus = ` AND ($6 = '' OR status = $6)`
		rare     = `status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED')`
	)
	with, from, where, order := ``, `daimon.task`, ``, ``
	switch {
	case few: // of which the page is sorted
		those, _ := narrow(sel, `*`, `$4`, `$6`)
		from, where, order = `(`+those+`) AS those`, `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	case sel.IDs != nil: // sorted here: not all servers read an index for an array in order
		with = `WITH those AS MATERIALIZED (SELECT * FROM daimon.task WHERE id = ANY ($9::bigint[])) `
		from, where, order = `those`, `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	case sel.Status == store.InProcessing: // few, which are sorted
		with = `WITH held AS MATERIALIZED (SELECT * FROM daimon.task WHERE watch IS NOT NULL ORDER BY kind, watch) `
		from, where, order = `held`, `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	case sel.Status != store.Normal && sel.Status != "":
		where, order = rare+` AND (status, id) > ($6, $1) AND (status, id) < ($6, $2)`+ofKind, `status, id`
		if sel.Kind != "" {
			where += ` AND kind = $4` // also in a plan for any arguments
		}
	case sel.Kind != "":
		where, order = `(kind, id) > ($4, $1) AND (kind, id) < ($4, $2)`+ofStatus, `kind, id`
	default:
		where, order = `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	}
	if sel.Newest {
		order = strings.ReplaceAll(order, ",", " DESC,") + " DESC"
	}
	return s.sql.adapted(with + `SELECT ` + columns + ` FROM ` + from + ` WHERE ` + where + ofStage + ` ORDER BY ` + order + ` LIMIT $3`)
}
