package postgres_test

import (
	"context"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/topic"
	"github.com/daimon-go/daimon/topic/postgres"
)

// Each machine has a Broker with an Engine on the same database.
func Example() {
	ctx := context.Background()
	engine, err := postgres.Open(ctx, "postgres://app@db.example/app", postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	b := topic.New(topic.Config{Engine: engine, Rules: []topic.Rule{{Filter: "orders/#", History: 100}}})
	_ = act.Run(ctx, act.Config{}, b.Setup)
}

// A message that is published if, and only if, a row is written.
func ExampleEngine_PublishIn() {
	place := func(ctx context.Context, db *pgx.Conn, engine *postgres.Engine, order string) error {
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO orders (data) VALUES ($1)`, order); err != nil {
				return err
			}
			return engine.PublishIn(ctx, tx, topic.Publication{Topic: "orders/new", Data: []byte(order)})
		})
		if err == nil {
			engine.Hint()
		}
		return err
	}
	_ = place
}
