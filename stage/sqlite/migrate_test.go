package sqlite_test

import (
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// schema is all that is in a database but its contents.
func schema(t *testing.T, db *sql.DB) (all []string) {
	t.Helper()
	rows, err := db.Query(`SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name`)
	require.NoError(t, err)
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		all = append(all, text)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestMigrationsByHand(t *testing.T) {
	path := newPath(t)
	want := schema(t, open(t, newPath(t), sqlite.Config{}).DB())
	db := raw(t, path)
	do(t, db, `CREATE TABLE report (body TEXT); INSERT INTO report VALUES ('kept')`)
	applied := func() (at int64) {
		do(t, db, sqlite.Migrations())
		require.Equal(t, want, withoutReport(schema(t, db)))
		require.Equal(t, migrations, count(t, db, `daimon_migration`))
		require.NoError(t, db.QueryRow(`SELECT applied FROM daimon_migration`).Scan(&at))
		return at
	}
	first := applied()
	require.WithinDuration(t, time.Now(), time.UnixMilli(first), time.Hour)
	s := open(t, path, sqlite.Config{})
	id := enqueued(t, s, stage.NewTask{Kind: "a", Stage: "CREATED"})
	require.Equal(t, first, applied(), "once more, and nothing was left to do")
	_, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, 1, count(t, db, `report WHERE body = 'kept'`))
}

// oldTasks is how many tasks are in an oldFile.
const oldTasks = 17

// oldFile returns a copy of a database that was made by the release before migration 2, a minute before the time that the
// test begins at. It has tasks in all conditions, and a row of the user.
func oldFile(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	content, err := os.ReadFile(filepath.Join("testdata", "0001.db"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

// A file of an older release has the same tasks after Open, and engines go on with them.
func TestOldFile(t *testing.T) {
	path, c := oldFile(t), &clock{}
	c.since.Store(int64(time.Minute))
	s, err := sqlite.OpenClock(path, sqlite.Config{}, c.now)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, strings.TrimLeft(inOldFile, "\n"), brief(all(t, s)))
	require.Equal(t, schema(t, open(t, newPath(t), sqlite.Config{}).DB()), withoutReport(schema(t, s.DB())))

	held := stage.Lease{Task: 7, Token: 1}
	beats, err := s.Heartbeat(t.Context(), []stage.Renewal{{Lease: held}, {Lease: stage.Lease{Task: 11, Token: 1}}}, time.Hour)
	require.NoError(t, err)
	require.Equal(t, []stage.Beat{{Renewed: true}, {Lost: true}}, beats)
	require.NoError(t, s.Finish(t.Context(), held, last, nil), "its worker goes on")
	require.Equal(t, []stage.ID{14, 13, 11, 12, 15, 16, 17}, claims(t, s), "resumed, given back, two that were lost, and then new ones")
	require.Equal(t, stage.ID(19), enqueued(t, s, stage.NewTask{Kind: "a", Stage: "CREATED"}), "18 was deleted before")
	require.Zero(t, count(t, s.DB(), `pragma_foreign_key_check`))
	intact(t, s.DB())
}

// brief has a line for each task.
func brief(tasks []stage.Task) (text string) {
	since := func(at time.Time) time.Duration { return max(0, at.Sub(time.Unix(1e9, 0))) }
	for _, x := range tasks {
		text += strings.TrimSpace(fmt.Sprintf("%d %s %s %s%s, attempt %d %s, due %v, token %d of %s, created %v, changed %v, %.8q",
			x.ID, x.Kind, x.Stage, x.Status, x.Wanted, x.Attempt, x.Failure, since(x.Due), x.Token, x.Worker, since(x.Created), since(x.Changed), x.Data))
		text += "\n"
	}
	return text
}

const inOldFile = `
1 a DONE NORMAL, attempt 0 , due 0s, token 1 of ann, created 0s, changed 2ms, "result"
2 a DONE NORMAL, attempt 0 , due 0s, token 2 of bob, created 2ms, changed 5ms, ""
3 a CREATED ERROR, attempt 3 für immer, due 0s, token 1 of ann, created 5ms, changed 7ms, "\x00\x01\x02"
4 a CREATED ERROR, attempt 2 later, due 1h0m0.009s, token 1 of ann, created 7ms, changed 9ms, ""
5 a CREATED SUSPENDED, attempt 0 , due 0s, token 0 of , created 9ms, changed 10ms, ""
6 a CREATED CANCELLED, attempt 0 , due 0s, token 0 of , created 10ms, changed 11ms, ""
7 a WORKING IN_PROCESSING, attempt 0 , due 1h0m0.012s, token 1 of ann, created 11ms, changed 12ms, "much muc"
8 a WORKING IN_PROCESSINGSUSPEND, attempt 0 , due 1h0m0.014s, token 1 of ann, created 13ms, changed 15ms, ""
9 a WORKING IN_PROCESSINGCANCEL, attempt 0 , due 1h0m0.016s, token 1 of bob, created 15ms, changed 17ms, ""
10 a HALF IN_PROCESSING, attempt 0 , due 1h0m0.018s, token 1 of ann, created 17ms, changed 19ms, "half"
11 b WORKING IN_PROCESSING, attempt 2 , due 70ms, token 1 of lost, created 19ms, changed 21ms, "lost"
12 b WORKING IN_PROCESSINGSUSPEND, attempt 0 , due 72ms, token 1 of lost, created 21ms, changed 23ms, ""
13 b CREATED NORMAL, attempt 0 , due 45ms, token 1 of ann, created 23ms, changed 25ms, ""
14 b CREATED RESUMED, attempt 0 , due 26ms, token 0 of , created 25ms, changed 26ms, ""
15 b CREATED NORMAL, attempt 0 , due 26ms, token 0 of , created 26ms, changed 26ms, "new"
16 c CREATED NORMAL, attempt 0 , due 27ms, token 0 of , created 27ms, changed 27ms, ""
17 b CREATED NORMAL, attempt 0 , due 28ms, token 0 of , created 28ms, changed 28ms, ""
`

// all returns all tasks.
func all(t *testing.T, s stage.Store) []stage.Task {
	t.Helper()
	tasks, err := s.List(t.Context(), stage.Selection{})
	require.NoError(t, err)
	return tasks
}

// withoutReport leaves out the table of the user.
func withoutReport(schema []string) []string {
	return slices.DeleteFunc(schema, func(text string) bool { return strings.HasPrefix(text, "CREATE TABLE report") })
}

// A program of the release before, which has the file open, claims without a ticket.
func TestClaimByAnOlderProgram(t *testing.T) {
	path := newPath(t)
	s := open(t, path, sqlite.Config{})
	enqueued(t, s, stage.NewTask{Kind: "a", Stage: "CREATED"})
	require.Len(t, claims(t, s), 1)
	all := stage.Ticket{Engine: -1, Number: math.MaxInt64}
	held, err := s.Claimed(t.Context(), all)
	require.NoError(t, err)
	require.Len(t, held, 1)
	do(t, raw(t, path), `UPDATE daimon_task SET token = token + 1`)
	held, err = s.Claimed(t.Context(), all)
	require.NoError(t, err)
	require.Empty(t, held, "another worker has it")
}

// claims claims all that is due, and returns the numbers in order.
func claims(t *testing.T, s *sqlite.Store) (order []stage.ID) {
	t.Helper()
	tasks, err := s.Claim(t.Context(), stage.Claim{
		Ticket: stage.Ticket{Engine: -1, Number: 1}, Worker: "new", Kinds: []string{"a", "b", "c"}, Limit: 20, Length: time.Hour,
	})
	require.NoError(t, err)
	for _, x := range tasks {
		order = append(order, x.ID)
	}
	return order
}
