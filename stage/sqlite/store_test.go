package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/price"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/internal/enginetest"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/daimon-go/daimon/stage/storetest"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// clock is a time that stands still until it is put forward.
type clock struct{ since atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1e9, c.since.Load()) }

// TestStore runs the suite on files, with two Stores on each. The first has the file count tasks, and the second is opened as it
// is by default.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, true) })
}

// TestRandom runs random histories on files that count and on files that do not. TestStore has one.
func TestRandom(t *testing.T) {
	tier.Need(t, tier.Long, "takes seconds for each history")
	for name, counts := range map[string]bool{"plain": false, "counts": true} {
		t.Run(name, func(t *testing.T) {
			storetest.Random(t, 5, func(t *testing.T) storetest.Harness { return harness(t, counts) })
		})
	}
}

// harness has two Stores on a file, which counts tasks if the first one has it do so.
func harness(t *testing.T, counts bool) storetest.Harness {
	path, c := newPath(t), &clock{}
	connect := func(counts bool) *sqlite.Store {
		s, err := sqlite.OpenClock(path, sqlite.Config{Relaxed: true, Counts: counts}, c.now)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	s := connect(counts)
	t.Cleanup(func() { intact(t, s.DB()) })
	return storetest.Harness{
		Store:   s,
		Again:   func() store.Store { return connect(false) },
		Advance: func(d time.Duration) { c.since.Add(int64(d)) },
	}
}

// TestCountsOfAFile has a file with tasks, which begins to count, and tasks that are changed by other programs.
func TestCountsOfAFile(t *testing.T) {
	path := newPath(t)
	without := open(t, path, sqlite.Config{})
	for range 3 {
		enqueued(t, without, store.NewTask{Kind: "a", Stage: "CREATED"})
	}
	want := func(n int, status store.Status) []store.Count {
		return []store.Count{{Kind: "a", Stage: "CREATED", Status: status, N: n}}
	}
	s := open(t, path, sqlite.Config{Counts: true})
	db := raw(t, path)
	for _, step := range []struct {
		text string
		want []store.Count
	}{
		{`SELECT 1`, want(3, store.Normal)},
		{`DELETE FROM daimon_task WHERE id = 1`, want(2, store.Normal)},
		{`UPDATE daimon_task SET status = 'CANCELLED', due = NULL`, want(2, store.Canceled)},
		{`DELETE FROM daimon_task`, nil},
		{`INSERT INTO daimon_task (kind, stage, status, created, changed) VALUES ('a', 'CREATED', 'NORMAL', 1, 1)`, want(1, store.Normal)},
	} {
		do(t, db, step.text)
		for _, s := range []*sqlite.Store{without, s, open(t, path, sqlite.Config{}), open(t, path, sqlite.Config{Counts: true})} {
			counts, err := s.Counts(t.Context())
			require.NoError(t, err)
			require.Equal(t, step.want, counts, step.text)
		}
	}
}

// TestRounding has times and lengths that the database does not have.
func TestRounding(t *testing.T) {
	s, err := sqlite.OpenClock(newPath(t), sqlite.Config{}, func() time.Time { return time.UnixMicro(5_000_999) })
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	_, err = s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
	require.NoError(t, err)
	claimed, err := s.Claim(t.Context(), store.Claim{
		Kinds: []string{"a"}, Limit: 1, Length: 1500 * time.Microsecond, Shows: working,
	})
	require.NoError(t, err)
	require.Equal(t, time.UnixMilli(5002).UTC(), claimed[0].Due, "up, since a lease may be longer but not shorter")
	stored, err := s.Get(t.Context(), claimed[0].ID)
	require.NoError(t, err)
	require.Equal(t, claimed[0], stored)
}

// TestPlan keeps claims from looking at all tasks, and from sorting them.
func TestPlan(t *testing.T) {
	s := open(t, newPath(t), sqlite.Config{})
	require.Equal(t, []string{
		"SEARCH daimon_task USING COVERING INDEX daimon_task_due (<expr>=? AND kind=? AND due<?)",
		"SCALAR SUBQUERY 1", // evaluated once
		"SEARCH daimon_pause USING PRIMARY KEY (kind=?)",
	}, plan(t, s, sqlite.Due, true, "a", 1, 1), "one search, nothing sorted")
	require.Equal(t, []string{
		"SEARCH daimon_task USING INDEX daimon_task_due (<expr>=?)",
		"SEARCH daimon_progress USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN",
		"SEARCH c EXISTS USING INTEGER PRIMARY KEY (rowid=?)",
		"USE TEMP B-TREE FOR ORDER BY",
	}, plan(t, s, sqlite.ClaimedBy, 1, 1, 1), "neither new tasks nor those that have ended")
}

// TestPlansOfPages keeps lists from looking at all tasks, and from sorting them.
func TestPlansOfPages(t *testing.T) {
	s := open(t, newPath(t), sqlite.Config{})
	for _, row := range []struct {
		selection store.Selection
		few       bool
		want      string // of all kinds of steps
	}{
		{store.Selection{Before: 7}, false, "SEARCH daimon_task USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
		{store.Selection{Kind: "a"}, false, "SEARCH daimon_task USING INDEX daimon_task_kind (kind=? AND rowid>?)"},
		{store.Selection{Kind: "a", Status: store.Normal}, false, "SEARCH daimon_task USING INDEX daimon_task_kind (kind=? AND rowid>?)"},
		{store.Selection{Status: store.Failed}, false, "SEARCH daimon_task USING INDEX daimon_task_status (status=? AND rowid>?)"},
		{store.Selection{Status: store.Failed, Kind: "a"}, false,
			"SEARCH daimon_task USING INDEX daimon_task_status_kind (status=? AND kind=? AND rowid>?)"},
		{store.Selection{Running: true}, false, "SEARCH daimon_task USING INTEGER PRIMARY KEY (rowid>?)"},
		{store.Selection{IDs: []store.ID{3, 4}, Kind: "a"}, false, "SEARCH daimon_task USING INTEGER PRIMARY KEY (rowid=?)"},
		{store.Selection{Running: true, Status: store.Normal}, true, "SCAN daimon_task USING COVERING INDEX daimon_task_due"},
		{store.Selection{Running: true, Kind: "a"}, true,
			"SEARCH daimon_task USING COVERING INDEX daimon_task_due (<expr>=? AND kind=? AND due>?)"},
		{store.Selection{Ended: true, Status: store.Normal}, true, "SEARCH daimon_task USING INDEX daimon_task_ended (status=?)"},
	} {
		for _, row.selection.Newest = range []bool{false, true} {
			text, args := sqlite.List(row.selection, row.few)
			steps := plan(t, s, text, args...)
			require.Contains(t, steps, row.want, "%+v", row.selection)
			require.NotContains(t, steps, "USE TEMP B-TREE FOR ORDER BY", "%+v", row.selection)
			require.NotContains(t, steps, "SCAN daimon_task", "%+v", row.selection)
		}
	}
}

// TestRunningAndEnded finds tasks by each of the two statements: the one for few and the one for many.
func TestRunningAndEnded(t *testing.T) {
	path := newPath(t)
	s := open(t, path, sqlite.Config{})
	do(t, raw(t, path), `
		WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 20)
		INSERT INTO daimon_task (kind, stage, status, token, due, created, changed)
		SELECT iif(n = 12, 'b', 'a'), 'CREATED', iif(n = 7, 'IN_PROCESSING', 'NORMAL'), n % 2, iif(n > 2 AND n <> 9, 100 - n, NULL), n, n
		FROM count`)
	for _, row := range []struct {
		selection store.Selection
		want      string
	}{
		{store.Selection{Running: true, Before: 11, Newest: true, Limit: 4}, "10,8,7,6"},
		{store.Selection{Running: true, Status: store.Normal, Before: 11, Newest: true, Limit: 4}, "10,8,6,5"},
		{store.Selection{Running: true, Kind: "a", After: 10, Limit: 2}, "11,13"},
		{store.Selection{Running: true, Kind: "a", Newest: true, Limit: 2}, "20,19"},
		{store.Selection{Running: true, Kind: "b"}, "12"},
		{store.Selection{Running: true, Limit: 2}, "3,4"},
		{store.Selection{Ended: true}, "1,2,9"},
		{store.Selection{Ended: true, Kind: "a", Status: store.Normal, Newest: true, Limit: 2}, "9,2"},
		{store.Selection{Ended: true, Before: 9, Newest: true}, "2,1"},
	} {
		for _, few := range []bool{false, true} {
			text, args := sqlite.List(row.selection, few)
			var found string
			require.NoError(t, s.DB().QueryRow(`SELECT group_concat(id) FROM (`+text+`)`, args...).Scan(&found))
			require.Equal(t, row.want, found, "%+v, few=%v", row.selection, few)
		}
	}
}

// plan returns the steps by which SQLite finds what a statement asks for.
func plan(t *testing.T, s *sqlite.Store, statement string, args ...any) (steps []string) {
	t.Helper()
	rows, err := s.DB().Query(`EXPLAIN QUERY PLAN `+statement, args...)
	require.NoError(t, err)
	for rows.Next() {
		var id, parent, unused int
		var step string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	require.NoError(t, rows.Err())
	return steps
}

func BenchmarkStore(b *testing.B) {
	for name, cfg := range map[string]sqlite.Config{"FULL": {}, "NORMAL": {Relaxed: true}, "NORMAL, counts": {Relaxed: true, Counts: true}} {
		b.Run(name, func(b *testing.B) {
			enginetest.BenchmarkStore(b, func(b *testing.B) store.Store { return open(b, newPath(b), cfg) })
		})
	}
}

func BenchmarkEngine(b *testing.B) {
	for name, cfg := range map[string]sqlite.Config{"full": {}, "relaxed": {Relaxed: true}} {
		b.Run(name, func(b *testing.B) {
			enginetest.Benchmark(b, func(b *testing.B) store.Store { return open(b, newPath(b), cfg) })
		})
	}
}

// TestMeasureLarge has 1,000,000 tasks: finished ones of two kinds, a few of a third one, old ones that have failed or
// were cancelled, and 100,000 that are new. Then few run, all of them old; in the end few have ended. A page takes at
// most 100 ms.
func TestMeasureLarge(t *testing.T) {
	tier.Measure(t, "pages, counts and a purge among 1,000,000 tasks")
	path := newPath(t)
	open(t, path, sqlite.Config{})
	do(t, raw(t, path), `
		WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1000000)
		INSERT INTO daimon_task (kind, stage, status, token, due, created, changed)
		SELECT CASE WHEN n % 50000 = 7 THEN 'c' WHEN n % 3 = 0 THEN 'b' ELSE 'a' END,
			CASE WHEN n < 70000 OR n > 900000 THEN 'CREATED' ELSE 'DONE' END,
			CASE WHEN n < 50000 THEN 'ERROR' WHEN n < 60000 THEN 'CANCELLED' WHEN n < 60100 THEN 'SUSPENDED' ELSE 'NORMAL' END,
			n <= 900000, CASE WHEN n > 900000 THEN n END, n, n
		FROM count`)
	s := open(t, path, sqlite.Config{Counts: true})
	kinds := []string{"a", "b", "c", "none"}
	price.AtMost(t, "ms of the slowest call", 100, func() float64 { return enginetest.Large(t, s, kinds) })
	pages := func(what string, sel store.Selection) {
		price.AtMost(t, "ms of the slowest page when "+what, 100, func() float64 { return enginetest.LargePages(t, s, kinds, sel) })
	}
	oldestRun := func(n int) {
		do(t, raw(t, path), fmt.Sprintf(`
			UPDATE daimon_task SET stage = 'DONE', due = NULL, token = 1 WHERE due IS NOT NULL;
			UPDATE daimon_task SET stage = 'CREATED', status = 'NORMAL', due = id, token = 0 WHERE id <= %d`, n))
		pages(fmt.Sprint(n, " run"), store.Selection{Running: true})
	}
	oldestRun(100)
	oldestRun(sqlite.Many)
	do(t, raw(t, path), `
		UPDATE daimon_task SET stage = 'CREATED', status = 'NORMAL', due = id, token = 0 WHERE due IS NULL AND id > 100;
		UPDATE daimon_task SET stage = 'DONE', due = NULL, token = 1 WHERE id <= 100`)
	pages("100 have ended", store.Selection{Ended: true})
}

// childVariable makes a test binary a process of a storm, whose argument is a database.
const childVariable = "DAIMON_SQLITE_CHILD"

// child is what that process does.
var child func(path string) error

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		if err := child(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newPath is where a database can be.
func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "tasks.db") }

// open opens a store, and closes it in the end.
func open(t testing.TB, path string, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// raw returns a connection of another program.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// do executes SQL.
func do(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	_, err := db.Exec(text, args...)
	require.NoError(t, err)
}

// intact says that nothing in the file is damaged.
func intact(t testing.TB, db *sql.DB) {
	t.Helper()
	var result string
	require.NoError(t, db.QueryRow(`PRAGMA integrity_check`).Scan(&result))
	require.Equal(t, "ok", result)
}

// count counts rows.
func count(t testing.TB, db *sql.DB, from string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM `+from, args...).Scan(&n))
	return n
}
