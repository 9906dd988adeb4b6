package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// The rows of a stage are there exactly when its static stage is.
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

	// What an engine does; the commit is what a processor has returned.
	ids, _ := s.Enqueue(ctx, stage.NewTask{Kind: "report", Stage: "CREATED"})
	claimed, _ := s.Claim(ctx, stage.Claim{
		Worker: "ann", Kinds: []string{"report"}, Limit: 8, Length: 15 * time.Second,
		Shows: []stage.Show{{Kind: "report", Found: "CREATED", Stage: "BUILDING"}},
	})
	err = s.Finish(ctx, claimed[0].Lease(), stage.Passage{From: "BUILDING", To: "BUILT", Last: true}, func(ctx context.Context, tx stage.Tx) error {
		_, err := sqlite.SQL(tx).Exec(`INSERT INTO report (task, body) VALUES (?, 'all is well')`, ids[0])
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	var at, body string
	err = s.DB().QueryRow(`SELECT stage, body FROM report JOIN daimon_task ON task = id`).Scan(&at, &body)
	fmt.Println(at, body, err)
	// Output: BUILT all is well <nil>
}
