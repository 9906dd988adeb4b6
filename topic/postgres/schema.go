package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tables makes the tables, in the schema daimon_topics.
//
//go:embed schema.sql
var tables string

const version = 1

// in returns SQL for the schema of the Engine.
func (e *Engine) in(sql string) string { return in(e.schema, sql) }

func in(schema, sql string) string {
	return strings.ReplaceAll(sql, "daimon_topics", pgx.Identifier{schema}.Sanitize())
}

// create makes the tables, unless they are there, in one transaction that keeps others out which do the same.
func (e *Engine) create(ctx context.Context) error {
	if there, err := e.there(ctx, e.pool); err != nil || there {
		return err
	}
	return pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, 0)`, e.key); err != nil {
			return err
		}
		if there, err := e.there(ctx, tx); err != nil || there {
			return err
		}
		var made bool // by an administrator, for a user who may not
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`, e.schema).Scan(&made)
		if err == nil && !made {
			_, err = tx.Exec(ctx, e.in("CREATE SCHEMA daimon_topics"))
		}
		if err == nil {
			_, err = tx.Exec(ctx, e.in(tables)) // several statements
		}
		return err
	})
}

// there reports whether the schema has the tables. It is an error if they are of another version.
func (e *Engine) there(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (there bool, err error) {
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'version')`, e.schema).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	var had int
	err = db.QueryRow(ctx, e.in(`SELECT number FROM daimon_topics.version`)).Scan(&had)
	if err == nil && had != version {
		err = fmt.Errorf("its tables are of version %d, and this program knows version %d", had, version)
	}
	return true, err
}
