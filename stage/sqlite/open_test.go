package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

func TestPaths(t *testing.T) {
	for _, name := range []string{
		"with spaces", "what?mode=memory", "#1", "100%", "%41", "a&b=c", "ünïcode 😀", `"it's"`, "file:x", `back\slash`,
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		s, err := sqlite.Open(path, sqlite.Config{Relaxed: true})
		require.NoError(t, err, name)
		_, err = s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
		require.NoError(t, err, name)
		all, err := s.List(t.Context(), store.Selection{})
		require.NoError(t, err, name)
		require.Len(t, all, 1, "the readers have opened the same file")
		require.NoError(t, s.Close())
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1, name)
		require.Equal(t, name, entries[0].Name(), "this file and no other")
	}
}

// TestRelativePath goes elsewhere after it has opened a database.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := open(t, "tasks.db", sqlite.Config{})
	t.Chdir(t.TempDir())
	_, err := s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
	require.NoError(t, err)
	_, err = s.Get(t.Context(), 1)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "tasks.db"))
	require.NoFileExists(t, "tasks.db")
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	newer := filepath.Join(dir, "newer.db")
	require.NoError(t, open(t, newer, sqlite.Config{}).Close())
	foreign := filepath.Join(dir, "foreign.db")
	for path, text := range map[string]string{
		newer:   `UPDATE daimon_version SET number = 1000`,
		foreign: `CREATE TABLE daimon_version (something TEXT)`,
	} {
		db := raw(t, path)
		do(t, db, text)
		require.NoError(t, db.Close())
	}

	for _, row := range []struct{ name, path, want string }{
		{"nothing", "", "no path"},
		{"in memory", ":memory:", "is no file; see package memory"},
		{"a URI", "file:tasks.db?mode=memory", "is a URI"},
		{"a NUL", "a\x00b", `NUL in the path "a\x00b"`},
		{"no such directory", filepath.Join(dir, "missing", "tasks.db"), "unable to open database file"},
		{"a directory", dir, "unable to open database file"},
		{"below a file", filepath.Join(file("plain", "x"), "tasks.db"), "unable to open database file"},
		{"no database", file("text", strings.Repeat("this is no database. ", 100)), "file is not a database"},
		{"newer", newer, "its tables are of version 1000, and this program knows version 1"},
		{"tables of another program", foreign, "no such column: number"},
	} {
		s, err := sqlite.Open(row.path, sqlite.Config{})
		require.Nil(t, s, row.name)
		require.ErrorContains(t, err, row.want, row.name)
		require.ErrorContains(t, err, "sqlite: ", row.name)
		if strings.HasPrefix(row.path, dir) {
			require.ErrorContains(t, err, row.path, row.name)
		}
	}
	if runtime.GOOS == "linux" {
		_, err := sqlite.Open("/proc/tasks.db", sqlite.Config{}) // where not even root can write
		require.ErrorContains(t, err, "/proc/tasks.db: ")
	}
	require.Empty(t, descriptors(t, dir))
	require.Equal(t, 1, count(t, raw(t, newer), `daimon_version WHERE number = 1000`), "nothing has changed")
}

// descriptors returns the descriptors of this process whose files are below dir.
func descriptors(t *testing.T, dir string) (open []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && strings.HasPrefix(file, dir) {
			open = append(open, file)
		}
	}
	return open
}

func TestClose(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(filepath.Join(dir, "tasks.db"), sqlite.Config{})
	require.NoError(t, err)
	enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED"})
	if runtime.GOOS == "linux" {
		require.NotEmpty(t, descriptors(t, dir))
	}
	require.NoError(t, s.Close())
	require.Empty(t, descriptors(t, dir))
	require.NoFileExists(t, filepath.Join(dir, "tasks.db-wal"), "all is in the one file")
	_, err = s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
	require.ErrorContains(t, err, "closed")
	_, err = s.Get(t.Context(), 1)
	require.ErrorContains(t, err, "closed")
	require.NoError(t, s.Close(), "once more")
}

func TestSettings(t *testing.T) {
	for _, row := range []struct {
		cfg  sqlite.Config
		want string
	}{
		{sqlite.Config{}, "2"},              // FULL
		{sqlite.Config{Relaxed: true}, "1"}, // NORMAL
	} {
		s := open(t, newPath(t), row.cfg)
		for pragma, want := range map[string]string{"synchronous": row.want, "journal_mode": "wal", "foreign_keys": "1"} {
			var got string
			require.NoError(t, s.Writer().QueryRow(`PRAGMA `+pragma).Scan(&got))
			require.Equal(t, want, got, pragma)
		}
		require.Equal(t, 1, s.Writer().Stats().MaxOpenConnections)
		require.Equal(t, 4, s.DB().Stats().MaxOpenConnections)
		_, err := s.DB().Exec(`DELETE FROM daimon_task`)
		require.ErrorContains(t, err, "readonly")
	}
}

// TestOpenAtOnce opens a database that is not there yet many times at once.
func TestOpenAtOnce(t *testing.T) {
	path := newPath(t)
	const times = 8
	var all sync.WaitGroup
	for range times {
		all.Go(func() {
			s, err := sqlite.Open(path, sqlite.Config{})
			if !assert.NoError(t, err) {
				return
			}
			_, err = s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
			assert.NoError(t, err)
			assert.NoError(t, s.Close())
		})
	}
	all.Wait()
	db := raw(t, path)
	require.Equal(t, times, count(t, db, `daimon_task`))
	require.Equal(t, 1, count(t, db, `daimon_version`))
	intact(t, db)
}
