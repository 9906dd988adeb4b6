// Package migration reads the SQL files with which a store brings a database up to date.
package migration

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Migration brings a database from the schema with the number before to its own. Once released, it does not change.
type Migration struct {
	Number int
	Name   string // of the file, without .sql
	SQL    string
}

// Read returns the migrations in the directory migrations, in order. Their files have names such as 0001_task.sql: Read
// panics if the numbers do not begin at 1, or have a gap.
func Read(files fs.FS) (all []Migration) {
	const dir = "migrations"
	entries, err := fs.ReadDir(files, dir) // sorted by name
	if err != nil {
		panic(err)
	}
	for i, entry := range entries {
		text, err := fs.ReadFile(files, path.Join(dir, entry.Name()))
		name := strings.TrimSuffix(entry.Name(), ".sql")
		if err != nil || !strings.HasPrefix(name, fmt.Sprintf("%04d_", i+1)) {
			panic(fmt.Sprintf("stage: %s is not migration %d (%v)", entry.Name(), i+1, err))
		}
		all = append(all, Migration{i + 1, name, string(text)})
	}
	return all
}
