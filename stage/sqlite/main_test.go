package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/stage/sqlite"
)

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
