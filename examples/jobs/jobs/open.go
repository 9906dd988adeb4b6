package jobs

import (
	"context"
	"io"
	"strings"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// Store keeps the tasks. Any number of programs may have it open.
type Store interface {
	stage.Store
	io.Closer
}

// Open opens a database: the URL of one of PostgreSQL, postgres://…, or a file of SQLite, which it makes if there is none.
func Open(ctx context.Context, db string) (Store, error) {
	if strings.HasPrefix(db, "postgres://") || strings.HasPrefix(db, "postgresql://") {
		return postgres.Open(ctx, postgres.Config{Connection: db, Counts: true})
	}
	return sqlite.Open(db, sqlite.Config{Counts: true})
}
