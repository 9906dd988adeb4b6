package report

import (
	"context"
	"fmt"
	"strings"

	"github.com/daimon-go/daimon/stage"
)

// Reports is a database of reports and of the tasks that make them. Any number of programs may have it open.
type Reports struct {
	// Store has the tasks. Suspending, resuming, cancelling and listing them needs no Engine.
	Store stage.Store

	tables
}

// tables are those of the reports, in the database of the tasks.
type tables interface {
	// insertCount writes the result of the first stage. Existing rows are an error: each stage finishes once.
	insertCount(ctx context.Context, tx stage.Tx, id stage.ID, c *count) error

	// count reads the result of the first stage, with as many words as a report names.
	count(ctx context.Context, id stage.ID) (*count, error)

	// insertReport writes the result of the second stage.
	insertReport(ctx context.Context, tx stage.Tx, id stage.ID, text string) error

	// text reads the result of the second stage.
	text(ctx context.Context, id stage.ID) (string, error)

	// Close closes the database.
	Close() error
}

// isServer reports whether a database is one of PostgreSQL.
func isServer(db string) bool {
	return strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://")
}

// Open opens an existing database: the URL of one of PostgreSQL, or a file of SQLite. In PostgreSQL it makes the tables that
// are missing.
func Open(ctx context.Context, db string) (*Reports, error) {
	if isServer(db) {
		return onServer(ctx, db)
	}
	return openFile(db)
}

// Create opens a database. It creates what is missing: the tables, or a file.
func Create(ctx context.Context, db string) (*Reports, error) {
	if isServer(db) {
		return onServer(ctx, db)
	}
	return createFile(ctx, db)
}

// add makes a task for each path, or for none. With the same name it makes them once, though the answer was lost the first time.
func (r *Reports) add(ctx context.Context, name string, paths []string) ([]stage.ID, error) {
	tasks := make([]stage.NewTask, len(paths))
	for i, path := range paths {
		tasks[i] = stage.NewTask{Kind: kind, Stage: first, Key: fmt.Sprintf("%s %d", name, i), Data: []byte(path)}
	}
	return r.Store.Enqueue(ctx, tasks...)
}

// Text returns the report of a finished task.
func (r *Reports) Text(ctx context.Context, id stage.ID) (text string, err error) {
	t, err := r.Store.Get(ctx, id)
	if err != nil {
		return "", err
	}
	if !t.Finished() {
		return "", fmt.Errorf("there is no report %d: %s", id, Condition(&t))
	}
	return r.text(ctx, id)
}

// deleted is the error for counts that are not there.
func deleted(id stage.ID) error {
	return stage.Permanent(fmt.Errorf("the counts of task %d were deleted", id))
}
