package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// childVariable names the child that a test binary is to be instead of running tests; its argument is a database.
const childVariable = "DAIMON_SQLITE_CHILD"

// children are what tests need other processes for.
var children = map[string]func(path string) error{}

// migrations is how many a new database has.
var migrations = strings.Count(sqlite.Migrations(), "BEGIN IMMEDIATE;")

func TestMain(m *testing.M) {
	if play := children[os.Getenv(childVariable)]; play != nil {
		if err := play(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// childCommand plays one of children in a process of its own.
func childCommand(t *testing.T, name, path string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, path)
	cmd.Env = append(append(os.Environ(), childVariable+"="+name), env...)
	return cmd
}

// startChild starts one. wait returns what it has to say, and how it ended.
func startChild(t *testing.T, name, path string, env ...string) (wait func() (string, error)) {
	t.Helper()
	cmd := childCommand(t, name, path, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	return func() (string, error) {
		err := cmd.Wait()
		return out.String(), err
	}
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

// enqueued adds a task.
func enqueued(t testing.TB, s stage.Store, n stage.NewTask) stage.ID {
	t.Helper()
	ids, err := s.Enqueue(t.Context(), n)
	require.NoError(t, err)
	require.Len(t, ids, 1)
	return ids[0]
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
	var verdict string
	require.NoError(t, db.QueryRow(`PRAGMA integrity_check`).Scan(&verdict))
	require.Equal(t, "ok", verdict)
}

// count counts rows.
func count(t testing.TB, db *sql.DB, from string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM `+from, args...).Scan(&n))
	return n
}

// makeTables makes the table of those rows. That a stage has two of them is no error here but a finding.
func makeTables(t testing.TB, s *sqlite.Store) {
	t.Helper()
	require.NoError(t, s.Update(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`CREATE TABLE step (task INTEGER NOT NULL, stage TEXT NOT NULL)`)
		return err
	}))
}

const insertion = `INSERT INTO step (task, stage) VALUES (?, ?)`
