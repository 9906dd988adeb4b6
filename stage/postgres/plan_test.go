package postgres_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// node is a node of a plan, of EXPLAIN (ANALYZE, FORMAT JSON).
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Cost     float64 `json:"Total Cost"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Plans    []node
}

// all returns the node and those below it.
func (n node) all() []node {
	nodes := []node{n}
	for _, below := range n.Plans {
		nodes = append(nodes, below.all()...)
	}
	return nodes
}

// explained executes a statement in a transaction that is rolled back, behind one that makes settings unless that is "", and
// returns its plan.
func explained(t *testing.T, s *postgres.Store, mode, settings, sql string, args ...any) []node {
	t.Helper()
	tx, err := s.Pool().Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SET LOCAL plan_cache_mode = `+mode)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), settings)
	require.NoError(t, err)
	var text []byte
	require.NoError(t, tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, FORMAT JSON) `+sql, args...).Scan(&text))
	var plans []struct{ Plan node }
	require.NoError(t, json.Unmarshal(text, &plans))
	return plans[0].Plan.all()
}

// TestPlans has the server execute each statement that engines make all the time beside a backlog of 100,000 tasks and
// 1,000 in processing: with an index, reading few rows, and sorting few. The plans are those for the arguments, and those
// for any arguments, which a prepared statement gets after some calls.
func TestPlans(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `INSERT INTO `+s.Schema()+`.task (kind, stage, due, created, changed)
		SELECT 'k' || n % 3, 'CREATED', now() - n * interval '1 ms', now(), now() FROM generate_series(1, 100000) AS n`)
	do(t, s, `INSERT INTO `+s.Schema()+`.task (kind, stage, status, token, until, watch, created, changed, engine, ticket)
		SELECT 'k1', 'WORKING', 'IN_PROCESSING', 1, now() + interval '1 h', now() + interval '1 h', now(), now(), 7, n
		FROM generate_series(1, 1000) AS n`)
	do(t, s, `ANALYZE `+s.Schema()+`.task`)
	ids, tokens, ones := make([]int64, 50), make([]int64, 50), make([]bool, 50)
	from, to, progress := make([]string, 50), make([]string, 50), make([][]byte, 50)
	for i := range ids {
		ids[i], tokens[i], from[i], to[i], ones[i] = int64(100001+i), 1, "WORKING", "DONE", true
	}
	claim := []any{[]string{"k0", "k1"}, 50, []string{"k0"}, []string{"CREATED"}, []bool{false}, []string{"WORKING"},
		[]int{0}, 15_000_000, "ann", 7, 1, true, []*time.Time{nil, nil}, []int{50, 50}, []int{0, 0}}
	for _, row := range []struct {
		name string
		sql  string
		args []any
		rows float64 // that any node may return
	}{
		{"heads", s.Texts().Heads, nil, 10},
		{"claim", s.Texts().Claim, claim, 200},
		{"finish", s.Texts().Finish, []any{ids, tokens, from, to, ones}, 50},
		{"heartbeat", s.Texts().Heartbeat, []any{ids, tokens, 15_000_000, progress, from}, 50},
		{"enter", s.Texts().Enter, []any{100001, 1, "NEXT", 0}, 1},
		{"claimed", s.Texts().Claimed, []any{7, 10}, 2000}, // all in processing, and dead ones of the rows above
		{"get", s.Texts().Get, []any{5}, 1},
	} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(row.name+" "+mode, func(t *testing.T) {
				indexes := 0
				for _, n := range explained(t, s, mode, "", row.sql, row.args...) {
					if n.Relation != "pause" { // it has few rows, if any
						require.NotEqual(t, "Seq Scan", n.Type)
					}
					require.LessOrEqual(t, (n.Rows+n.Removed)*n.Loops, row.rows, "%+v", n)
					if n.Index != "" {
						indexes++
					}
				}
				require.Positive(t, indexes)
			})
		}
	}
}

// TestPlansOfPages has 100,000 tasks of which few are of the kind c, and few in any status but Normal, all of them old. No page
// reads more than it has, whether the planner knows something of the table or not.
func TestPlansOfPages(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `INSERT INTO `+s.Schema()+`.task (kind, stage, status, token, created, changed)
		SELECT CASE WHEN n % 10000 = 7 THEN 'c' ELSE 'ab' END, 'DONE', CASE WHEN n <= 30000 THEN 'ERROR' ELSE 'NORMAL' END, 1, now(), now()
		FROM generate_series(1, 100000) AS n`)
	do(t, s, `INSERT INTO `+s.Schema()+`.task (id, kind, stage, status, token, until, watch, created, changed)
		SELECT -n, 'ab', 'WORKING', 'IN_PROCESSING', 1, now(), now(), now(), now() FROM generate_series(1, 100) AS n`)
	do(t, s, `UPDATE `+s.Schema()+`.task SET due = now() WHERE id > 30000 AND id <= 30030`)
	for range 2 {
		pagesArePlanned(t, s)
		do(t, s, `ANALYZE `+s.Schema()+`.task`)
	}
}

func pagesArePlanned(t *testing.T, s *postgres.Store) {
	const first, last = math.MinInt64, math.MaxInt64
	for _, row := range []struct {
		name      string
		selection store.Selection
		few       bool
		index     string
		rows      int
	}{
		{"all", store.Selection{}, false, "task_pkey", 10},
		{"a kind that is not rare", store.Selection{Kind: "ab"}, false, "task_kind", 10},
		{"a kind, and the usual status", store.Selection{Kind: "c", Status: store.Normal}, false, "task_kind", 10},
		{"a status that is rare", store.Selection{Status: store.Failed}, false, "task_status", 10},
		{"a status that none has", store.Selection{Status: store.Suspended}, false, "task_status", 0},
		{"a status that is rare, and a kind", store.Selection{Kind: "c", Status: store.Failed}, false, "task_kind_status", 3},
		{"in processing", store.Selection{Status: store.InProcessing}, false, "task_watch", 100},
		{"those with some numbers", store.Selection{IDs: []store.ID{7, 99_999, 50_000, 1 << 40}}, false, "task_pkey", 3},
		{"of them those of a kind and a status", store.Selection{IDs: []store.ID{7, 99_999, 50_000}, Kind: "ab", Status: store.Failed}, false, "task_pkey", 3},
		{"few that run", store.Selection{Running: true}, true, "task_due", 130},
		{"few of a kind that run", store.Selection{Running: true, Kind: "ab", Status: store.Normal}, true, "task_due", 130},
		{"few of a kind that run, of which there are none", store.Selection{Running: true, Kind: "none"}, true, "task_watch", 0},
		{"few that have ended, of which there are none", store.Selection{Ended: true, Status: store.Suspended}, true, "task_ended", 0},
		{"very many that have ended", store.Selection{Ended: true, Status: store.Failed}, false, "task_status", 10},
	} {
		for _, row.selection.Newest = range []bool{false, true} {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				name := fmt.Sprintf("%s, newest=%v, %s", row.name, row.selection.Newest, mode)
				args := []any{int64(first), int64(last), 10, row.selection.Kind, "", string(row.selection.Status), row.selection.Running, row.selection.Ended}
				if row.selection.IDs != nil {
					args = append(args, row.selection.IDs)
				}
				nodes := explained(t, s, mode, postgres.InOrder, s.Listing(row.selection, row.few), args...)
				for _, n := range nodes {
					require.LessOrEqual(t, (n.Rows+n.Removed)*n.Loops, float64(row.rows), "%s: %+v", name, n)
				}
				require.True(t, slices.ContainsFunc(nodes, func(n node) bool { return n.Index == row.index }), "%s: %+v", name, nodes)
			}
		}
	}
	for _, row := range []struct {
		selection store.Selection
		indexes   []string
		rows      float64
	}{
		{store.Selection{Running: true}, []string{"task_due", "task_watch"}, 130},
		{store.Selection{Running: true, Kind: "ab"}, []string{"task_due", "task_watch"}, 130},
		{store.Selection{Ended: true}, []string{"task_ended"}, postgres.Many + 1},
		{store.Selection{Ended: true, Status: store.Normal}, []string{"task_ended"}, postgres.Many + 1},
	} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			sql, args := s.Counting(row.selection)
			nodes := explained(t, s, mode, postgres.InOrder, sql, args...)
			for _, index := range row.indexes {
				require.True(t, slices.ContainsFunc(nodes, func(n node) bool { return n.Index == index }), "%+v", nodes)
			}
			for _, n := range nodes {
				require.LessOrEqual(t, (n.Rows+n.Removed)*n.Loops, row.rows, "%+v", n)
			}
		}
	}
}

// TestManyRun lists tasks that run, of which there is one too many to look at all, and then one less.
func TestManyRun(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `INSERT INTO `+s.Schema()+`.task (kind, stage, due, created, changed)
		SELECT 'a', 'CREATED', CASE WHEN n <> 9 AND n > 2 THEN now() END, now(), now() FROM generate_series(1, $1::int) AS n`, postgres.Many+4)
	do(t, s, `UPDATE `+s.Schema()+`.task SET status = 'IN_PROCESSING', token = 1, until = now(), watch = now() WHERE id = 2`)
	do(t, s, `UPDATE `+s.Schema()+`.task SET status = 'IN_PROCESSING', token = 1, until = now(), watch = now(), due = NULL WHERE id = 7`)
	do(t, s, `DELETE FROM `+s.Schema()+`.task WHERE id = 19`)
	manyAreListed(t, s, store.Selection{Running: true}, map[store.Status][][]store.ID{
		"": {{10, 8, 7, 6}, {2, 3}}, store.Normal: {{10, 8, 6, 5}, {3, 4}},
	})
}

// TestManyHaveEnded is TestManyRun for tasks that have ended.
func TestManyHaveEnded(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `INSERT INTO `+s.Schema()+`.task (kind, stage, status, due, created, changed)
		SELECT 'a', 'CREATED', CASE WHEN n = 7 THEN 'ERROR' ELSE 'NORMAL' END, CASE WHEN n = 9 OR n < 3 THEN now() END, now(), now()
		FROM generate_series(1, $1::int) AS n`, postgres.Many+4)
	manyAreListed(t, s, store.Selection{Ended: true}, map[store.Status][][]store.ID{
		"": {{10, 8, 7, 6}, {3, 4}}, store.Normal: {{10, 8, 6, 5}, {3, 4}},
	})
}

// manyAreListed wants two pages, of which the first goes back from the tenth task, before and after the twentieth is deleted.
func manyAreListed(t *testing.T, s *postgres.Store, sel store.Selection, want map[store.Status][][]store.ID) {
	listed := func(sel store.Selection) (ids []store.ID) {
		tasks, err := s.List(t.Context(), sel)
		require.NoError(t, err)
		for _, task := range tasks {
			ids = append(ids, task.ID)
		}
		return ids
	}
	for range 2 {
		for _, sel.Kind = range []string{"", "a"} {
			for status, pages := range want {
				newest, oldest := sel, sel
				newest.Status, newest.Before, newest.Newest, newest.Limit = status, 11, true, 4
				oldest.Status, oldest.Limit = status, 2
				require.Equal(t, pages[0], listed(newest), "%+v", newest)
				require.Equal(t, pages[1], listed(oldest), "%+v", oldest)
			}
		}
		do(t, s, `DELETE FROM `+s.Schema()+`.task WHERE id = 20`)
	}
}
