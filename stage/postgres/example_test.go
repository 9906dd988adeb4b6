package postgres_test

import (
	"context"
	"fmt"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// A stage computes, and writes its result in the transaction in which it ends.
func Example() {
	ctx := context.Background()
	s, err := postgres.Open(ctx, postgres.Config{
		Connection: "postgres://worker:secret@db.example/app?sslmode=verify-full&pool_max_conns=12",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()

	build := func(ctx context.Context, t *store.Task) (store.Commit, error) {
		body := "the report of " + string(t.Data)
		return func(ctx context.Context, tx store.Tx) error {
			_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO report (task, body) VALUES ($1, $2)`, t.ID, body)
			return err
		}, nil
	}
	engine, err := stage.New(stage.Config{
		Store:      s,
		Kinds:      map[string]stage.Kind{"report": {Chain: stage.Begin("CREATED").Then("BUILDING", "build", "BUILT")}},
		Processors: map[string]stage.Processor{"build": build},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := engine.Enqueue(ctx, "report", []byte("2026")); err != nil {
		fmt.Println(err)
		return
	}
	_ = engine.Run(ctx) // until ctx ends
}
