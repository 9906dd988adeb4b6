package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/examples/report/report"
	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/stage"
)

func TestMain(m *testing.M) { exectest.Main(m) }

var program = exectest.Build{Dir: "."}

// desk is a directory with a database and files, in which the programs of a test run.
type desk struct {
	*testing.T
	dir, db string
}

// line is a line of a text.
const line = "What isn't in a word isn't counted — not even “this”.\n"

func newDesk(t *testing.T) *desk {
	t.Parallel() // most of it is waiting
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &desk{t, dir, filepath.Join(dir, "report.db")}
}

// write makes a file.
func (d *desk) write(name, text string) string {
	d.Helper()
	path := filepath.Join(d.dir, name)
	require.NoError(d, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// start starts the program with a command, for this database.
func (d *desk) start(command string, arguments ...string) *exectest.Program {
	d.Helper()
	cmd := program.Command(d.T, append([]string{command, "-db", d.db}, arguments...)...)
	cmd.Dir = d.dir
	return exectest.Start(d.T, cmd)
}

// slow is what a program says whose heartbeat had to wait for the disk for seconds, which others may keep busy.
var slow = regexp.MustCompile(`(?m)^\S+\tERROR\tthe store does not answer, and is asked again\t\{"doing": "heartbeat".*deadline exceeded"\}\n`)

// run runs a command, and requires status 0 and nothing on standard error.
func (d *desk) run(command string, arguments ...string) (out string) {
	d.Helper()
	p := d.start(command, arguments...)
	require.Zero(d, p.Exit(d.T), p.Said())
	require.Empty(d, slow.ReplaceAllString(p.Said(), ""))
	return p.Out()
}

// runAlone runs a command that has no database, and returns what it says.
func (d *desk) runAlone(command string) string {
	d.Helper()
	p := exectest.Start(d.T, program.Command(d.T, command))
	require.Zero(d, p.Exit(d.T))
	return p.Out() + p.Said()
}

// fails runs a command, and requires status 1.
func (d *desk) fails(command string, arguments ...string) (out, said string) {
	d.Helper()
	p := d.start(command, arguments...)
	require.Equal(d, 1, p.Exit(d.T))
	return p.Out(), p.Said()
}

// open opens a second connection to the database.
func (d *desk) open() *report.Reports {
	d.Helper()
	r, err := report.Open(context.Background(), d.db)
	require.NoError(d, err)
	d.Cleanup(func() { require.NoError(d, r.Close()) })
	return r
}

// opened opens a second connection to the database that p creates.
func (d *desk) opened(p *exectest.Program) *report.Reports {
	d.Helper()
	exectest.Eventually(d.T, exectest.Patience, "the first file to be added", func() bool {
		require.False(d, p.Gone() && p.Out() == "", p.Said())
		return strings.Contains(p.Out(), ": added\n")
	})
	return d.open()
}

// task returns a task as it is now.
func (d *desk) task(r *report.Reports, id stage.ID) stage.Task {
	d.Helper()
	task, err := r.Store.Get(context.Background(), id)
	require.NoError(d, err)
	return task
}

// becomes waits until a task has a stage and a status.
func (d *desk) becomes(r *report.Reports, id stage.ID, at string, status stage.Status) stage.Task {
	d.Helper()
	var task stage.Task
	exectest.Eventually(d.T, exectest.Patience, fmt.Sprintf("%d to be at %s, %s", id, at, status), func() bool {
		task = d.task(r, id)
		return task.Stage == at && task.Status == status
	})
	return task
}

// consistent requires that the rows of a stage are there, once, exactly when the task has finished that stage.
func (d *desk) consistent() {
	d.Helper()
	driver, tasks := "sqlite", "daimon_task"
	if strings.HasPrefix(d.db, "postgres://") {
		driver, tasks = "pgx", "daimon.task"
	}
	db, err := sql.Open(driver, d.db)
	require.NoError(d, err)
	defer db.Close()
	var wrong int
	require.NoError(d, db.QueryRow(`SELECT count(*) FROM `+tasks+` AS t WHERE
		CASE WHEN stage IN ('WORDS_COUNTED', 'BUILDING_REPORT', 'FINISHED') THEN 1 ELSE 0 END <>
			(SELECT count(*) FROM counts WHERE task = t.id)
		OR (SELECT count(*) FROM words WHERE task = t.id) <>
			coalesce((SELECT CASE WHEN different < 1000 THEN different ELSE 1000 END FROM counts WHERE task = t.id), 0)
		OR CASE WHEN stage = 'FINISHED' THEN 1 ELSE 0 END <> (SELECT count(*) FROM reports WHERE task = t.id)`).Scan(&wrong))
	require.Zero(d, wrong, "tasks whose rows do not fit their stage")
}

// reports requires that the database has reports on these files, and no others.
func (d *desk) reports(paths ...string) {
	d.Helper()
	r := d.open()
	d.consistent()
	tasks, err := r.Store.List(context.Background(), stage.Selection{})
	require.NoError(d, err)
	var got []string
	for _, task := range tasks {
		if task.Stage == "FINISHED" {
			got = append(got, string(task.Data))
		}
	}
	require.ElementsMatch(d, paths, got)
}
