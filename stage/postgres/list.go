package postgres

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage"
)

func (s *tasks) List(ctx context.Context, sel stage.Selection) ([]stage.Task, error) {
	few, err := s.fewRun(ctx, sel)
	if err != nil {
		return nil, s.failed(ctx, "list", err)
	}
	limit := cmp.Or(max(0, sel.Limit), math.MaxInt)
	args := []any{sel.After, cmp.Or(sel.Before, math.MaxInt64), limit, sel.Kind, sel.Stage, string(sel.Status), sel.Running}
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

// many is how many tasks that run are too many to look at all of them for a page.
const many = 10_000

// fewRun reports whether sel asks for tasks that run, of which there are so few that the indexes of claims find them.
func (s *tasks) fewRun(ctx context.Context, sel stage.Selection) (bool, error) {
	if !sel.Running || sel.IDs != nil || sel.Status == stage.InProcessing || sel.Status == stage.Resumed { // all of these run
		return false, nil
	}
	text, args := countRunning(sel)
	n, err := collectWith(ctx, s.pool, inOrder, pgx.RowTo[int], s.sql.adapted(text), args...)
	return err == nil && n[0] <= many, err
}

// countRunning returns the statement that counts tasks that run, up to one more than many.
func countRunning(sel stage.Selection) (text string, args []any) {
	args = []any{many + 1}
	if sel.Kind != "" {
		args = append(args, sel.Kind)
	}
	return `SELECT count(*) FROM (` + running(sel, `id`, `$2`) + ` LIMIT $1) AS those`, args
}

// running returns a query of what is wanted of tasks that run, index by index.
func running(sel stage.Selection, what, kind string) string {
	ofKind := ``
	if sel.Kind != "" {
		ofKind = ` AND kind = ` + kind
	}
	return `(SELECT ` + what + ` FROM daimon.task WHERE due IS NOT NULL` + ofKind + ` ORDER BY kind, fresh, due, id)
		UNION ALL (SELECT ` + what + ` FROM daimon.task WHERE watch IS NOT NULL` + ofKind + ` ORDER BY kind, watch)`
}

// list returns the statement that finds what sel selects. Its bounds and its order are those of one index: the planner would
// choose by statistics, which do not know that, for example, all tasks in Error are old; and a plan for any arguments does not
// know which kinds are rare. So a column of that index is in no other condition: the order would be by id alone.
func (s *tasks) list(sel stage.Selection, fewRun bool) string {
	const (
		ofStage  = ` AND ($5 = '' OR stage = $5) AND (NOT $7::bool OR due IS NOT NULL OR until IS NOT NULL)`
		ofKind   = ` AND ($4 = '' OR kind = $4)`
		ofStatus = ` AND ($6 = '' OR status = $6)`
		rare     = `status IN ('SUSPENDED', 'RESUMED', 'ERROR', 'CANCELLED')`
	)
	with, from, where, order := ``, `daimon.task`, ``, ``
	switch {
	case fewRun: // of which the page is sorted
		from, where, order = `(`+running(sel, `*`, `$4`)+`) AS those`, `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	case sel.IDs != nil: // sorted here: not all servers read an index for an array in order
		with = `WITH those AS MATERIALIZED (SELECT * FROM daimon.task WHERE id = ANY ($8::bigint[])) `
		from, where, order = `those`, `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	case sel.Status == stage.InProcessing: // few, which are sorted
		with = `WITH held AS MATERIALIZED (SELECT * FROM daimon.task WHERE watch IS NOT NULL ORDER BY kind, watch) `
		from, where, order = `held`, `id > $1 AND id < $2`+ofKind+ofStatus, `id`
	case sel.Status != stage.Normal && sel.Status != "":
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
