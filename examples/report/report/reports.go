package report

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

//go:embed tables.sql
var tables string

// Reports is a database of reports and of the tasks that make them. Any number of programs may have it open.
type Reports struct {
	// Store has the tasks. Suspending, resuming, cancelling and listing them needs no Engine.
	Store *sqlite.Store
}

// Schema returns the SQL that creates all tables.
func Schema() string { return sqlite.Migrations() + "\n" + tables }

// Open opens an existing database.
func Open(path string) (*Reports, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database %s; build makes one", path)
	}
	store, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	return &Reports{store}, nil
}

// Create opens a database, and creates it, or the tables of the reports, if they are missing.
func Create(ctx context.Context, path string) (*Reports, error) {
	store, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	err = store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(tables)
		return err
	})
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return &Reports{store}, nil
}

// Close closes the database.
func (r *Reports) Close() error { return r.Store.Close() }

// add makes a task for each path, or for none.
func (r *Reports) add(ctx context.Context, paths []string) ([]stage.ID, error) {
	ids := make([]stage.ID, len(paths))
	err := r.Store.Update(ctx, func(tx *sql.Tx) (err error) {
		for i, path := range paths {
			if ids[i], err = r.Store.EnqueueIn(tx, kind, first, []byte(path)); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	return ids, err
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
	err = r.Store.DB().QueryRowContext(ctx, "SELECT text FROM reports WHERE task = ?", id).Scan(&text)
	return text, err
}

// insertCount writes the result of the first stage. Existing rows are an error: each stage finishes once.
func insertCount(tx *sql.Tx, id stage.ID, c *count) error {
	_, err := tx.Exec(`INSERT INTO counts (task, changed, bytes, lines, words, different, rest)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		id, c.changed.UTC().Format(time.RFC3339Nano), c.bytes, c.lines, c.words, c.different, c.rest)
	if err != nil {
		return err
	}
	insert, err := tx.Prepare("INSERT INTO words (task, word, n) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, f := range c.top {
		if _, err := insert.Exec(id, f.word, f.n); err != nil {
			return err
		}
	}
	return nil
}

// count reads the result of the first stage, with as many words as a report names.
func (r *Reports) count(ctx context.Context, id stage.ID) (*count, error) {
	c, changed := &count{}, ""
	err := r.Store.DB().QueryRowContext(ctx, `SELECT changed, bytes, lines, words, different, rest FROM counts WHERE task = ?`, id).
		Scan(&changed, &c.bytes, &c.lines, &c.words, &c.different, &c.rest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, stage.Permanent(fmt.Errorf("the counts of task %d were deleted", id))
	}
	if err != nil {
		return nil, err
	}
	if c.changed, err = time.Parse(time.RFC3339Nano, changed); err != nil {
		return nil, stage.Permanent(err)
	}
	rows, err := r.Store.DB().QueryContext(ctx, "SELECT word, n FROM words WHERE task = ? ORDER BY n DESC, word LIMIT ?", id, maxTop)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var f frequency
		if err := rows.Scan(&f.word, &f.n); err != nil {
			return nil, err
		}
		c.top = append(c.top, f)
	}
	return c, rows.Err()
}

// insertReport writes the result of the second stage.
func insertReport(tx *sql.Tx, id stage.ID, text string) error {
	_, err := tx.Exec("INSERT INTO reports (task, text) VALUES (?, ?)", id, text)
	return err
}
