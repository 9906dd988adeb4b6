package main

import (
	"context"
	"io"
	"strings"

	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

// store keeps the tasks. Any number of programs may have it open.
type s interface {
	store.Store
	io.Closer
}

// open opens a database.
func open(ctx context.Context, db string) (s, error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		return postgres.Open(ctx, postgres.Config{Connection: db, Counts: true})
	}
	return sqlite.Open(db, sqlite.Config{Counts: true})
}
