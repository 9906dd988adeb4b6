package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

// A stage computes, and writes its rows in the transaction in which it ends: they are there exactly when its static stage is.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s, err := sqlite.Open(filepath.Join(dir, "reports.db"), sqlite.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = s.Close() }()

	ctx := context.Background()
	err = s.Update(ctx, func(tx *sql.Tx) error {
		_, err := tx.Exec(`CREATE TABLE IF NOT EXISTS report (task INTEGER PRIMARY KEY REFERENCES daimon_task, body TEXT)`)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	build := func(_ context.Context, t *store.Task) (store.Commit, error) {
		body := "the report of " + string(t.Data)
		return func(ctx context.Context, tx store.Tx) error {
			_, err := sqlite.Tx(tx).ExecContext(ctx, `INSERT INTO report (task, body) VALUES (?, ?)`, t.ID, body)
			return err
		}, nil
	}
	engine, err := stage.New(stage.Config{
		Store:      s,
		Kinds:      map[string]stage.Kind{"report": {Chain: stage.Begin("CREATED").Then("BUILDING", "build", "BUILT")}},
		Processors: map[string]stage.Processor{"build": build},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := engine.Enqueue(ctx, "report", []byte("2026")); err != nil {
		log.Fatal(err)
	}
	_, _ = engine.Fire(ctx) // a program that stays calls Run
	_ = engine.Wait(ctx)

	var at, body string
	err = s.DB().QueryRow(`SELECT stage, body FROM report JOIN daimon_task ON task = id`).Scan(&at, &body)
	fmt.Println(at, body, err)
	// Output: BUILT the report of 2026 <nil>
}
