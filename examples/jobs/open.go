package main

import (
	"context"
	"io"
	"strings"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// store keeps the tasks. Any number of programs may have it open.
type store interface {
	stage.Store
	io.Closer
}

// open opens a database.
func open(ctx context.Context, db string) (store, error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		return postgres.Open(ctx, postgres.Config{Connection: db, Counts: true})
	}
	return sqlite.Open(db, sqlite.Config{Counts: true})
}
