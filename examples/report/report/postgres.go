package report

import (
	"context"
	_ "embed"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

//go:embed postgres.sql
var serverTables string

// server is a database of PostgreSQL.
type server struct{ *postgres.Store }

// onServer opens a database, and creates the tables that are missing.
func onServer(ctx context.Context, url string) (*Reports, error) {
	store, err := postgres.Open(ctx, postgres.Config{Connection: url})
	if err != nil {
		return nil, err
	}
	if _, err := store.Pool().Exec(ctx, serverTables); err != nil {
		_ = store.Close()
		return nil, err
	}
	return &Reports{store, server{store}}, nil
}

func (s server) insertCount(ctx context.Context, tx stage.Tx, id stage.ID, c *count) error {
	words, times := make([]string, len(c.top)), make([]int64, len(c.top))
	for i, w := range c.top {
		words[i], times[i] = w.word, w.n
	}
	b := &pgx.Batch{}
	b.Queue(`INSERT INTO counts (task, changed, bytes, lines, words, different, rest) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		id, c.changed, c.bytes, c.lines, c.words, c.different, c.rest)
	b.Queue(`INSERT INTO words (task, word, n) SELECT $1, * FROM unnest($2::text[], $3::bigint[])`, id, words, times)
	return postgres.Tx(tx).SendBatch(ctx, b).Close()
}

func (s server) count(ctx context.Context, id stage.ID) (*count, error) {
	c := &count{}
	err := s.Pool().QueryRow(ctx, `SELECT changed, bytes, lines, words, different, rest FROM counts WHERE task = $1`, id).
		Scan(&c.changed, &c.bytes, &c.lines, &c.words, &c.different, &c.rest)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, deleted(id)
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.Pool().Query(ctx, `SELECT word, n FROM words WHERE task = $1 ORDER BY n DESC, word COLLATE "C" LIMIT $2`, id, maxTop)
	if err != nil {
		return nil, err
	}
	c.top, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (w frequency, err error) {
		return w, row.Scan(&w.word, &w.n)
	})
	return c, err
}

func (s server) insertReport(ctx context.Context, tx stage.Tx, id stage.ID, text string) error {
	_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO reports (task, text) VALUES ($1, $2)`, id, text)
	return err
}

func (s server) text(ctx context.Context, id stage.ID) (text string, err error) {
	err = s.Pool().QueryRow(ctx, `SELECT text FROM reports WHERE task = $1`, id).Scan(&text)
	return text, err
}
