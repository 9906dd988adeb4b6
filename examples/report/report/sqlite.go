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

//go:embed sqlite.sql
var fileTables string

// file is a database of SQLite.
type file struct{ *sqlite.Store }

// Schema returns the SQL that creates the tables of the reports in a file.
func Schema() string { return fileTables }

func openFile(path string) (*Reports, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no database %s; build makes one", path)
	}
	store, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	return &Reports{store, file{store}}, nil
}

// createFile opens a file, and creates it, or the tables of the reports, if they are missing.
func createFile(ctx context.Context, path string) (*Reports, error) {
	store, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		return nil, err
	}
	err = store.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(fileTables)
		return err
	})
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	return &Reports{store, file{store}}, nil
}

func (f file) insertCount(ctx context.Context, t stage.Tx, id stage.ID, c *count) error {
	tx := sqlite.SQL(t)
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
	for _, w := range c.top {
		if _, err := insert.Exec(id, w.word, w.n); err != nil {
			return err
		}
	}
	return nil
}

func (f file) count(ctx context.Context, id stage.ID) (*count, error) {
	c, changed := &count{}, ""
	err := f.DB().QueryRowContext(ctx, `SELECT changed, bytes, lines, words, different, rest FROM counts WHERE task = ?`, id).
		Scan(&changed, &c.bytes, &c.lines, &c.words, &c.different, &c.rest)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, deleted(id)
	}
	if err != nil {
		return nil, err
	}
	if c.changed, err = time.Parse(time.RFC3339Nano, changed); err != nil {
		return nil, stage.Permanent(err)
	}
	rows, err := f.DB().QueryContext(ctx, "SELECT word, n FROM words WHERE task = ? ORDER BY n DESC, word LIMIT ?", id, maxTop)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var w frequency
		if err := rows.Scan(&w.word, &w.n); err != nil {
			return nil, err
		}
		c.top = append(c.top, w)
	}
	return c, rows.Err()
}

func (f file) insertReport(ctx context.Context, tx stage.Tx, id stage.ID, text string) error {
	_, err := sqlite.SQL(tx).Exec("INSERT INTO reports (task, text) VALUES (?, ?)", id, text)
	return err
}

func (f file) text(ctx context.Context, id stage.ID) (text string, err error) {
	err = f.DB().QueryRowContext(ctx, "SELECT text FROM reports WHERE task = ?", id).Scan(&text)
	return text, err
}
