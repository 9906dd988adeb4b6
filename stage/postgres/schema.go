package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// tables makes the tables, in the schema daimon.
//
//go:embed schema.sql
var tables string

const version = 1

// newSchema is for a database that has none. An administrator may have made it, for a user who may not.
const newSchema = "CREATE SCHEMA daimon;\n\n"

// in returns SQL for another schema than daimon.
func in(schema, sql string) string {
	name := pgx.Identifier{schema}.Sanitize()
	return strings.NewReplacer("SCHEMA daimon", "SCHEMA "+name, "daimon.", name+".").Replace(sql)
}

// DDL returns all that Open does to a database without the schema, as SQL, to read it or to run it with more rights than the
// program has. It is one transaction. "" means the schema daimon.
func DDL(schema string) string {
	return "BEGIN;\n" + in(orDefault(schema), newSchema+tables) + "COMMIT;\n"
}

// create makes the tables, unless they are there, in one transaction that keeps others out which do the same.
func (s *Store) create(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext($1))`, "daimon "+s.schema); err != nil {
			return err
		}
		if there, err := s.there(ctx, tx); err != nil || there {
			return err
		}
		var old bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`, s.schema).Scan(&old)
		if err == nil && !old {
			_, err = tx.Exec(ctx, in(s.schema, newSchema))
		}
		if err == nil {
			_, err = tx.Exec(ctx, in(s.schema, tables)) // several statements
		}
		return err
	})
}

// there reports whether the schema has the tables. It is an error if they are of another version.
func (s *Store) there(ctx context.Context, db pgx.Tx) (there bool, err error) {
	// to_regclass would not see, after the wait for the lock, what another process has made meanwhile.
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'version')`,
		s.schema).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	var had int
	err = db.QueryRow(ctx, `SELECT number FROM `+pgx.Identifier{s.schema, "version"}.Sanitize()).Scan(&had)
	if err == nil && had != version {
		err = fmt.Errorf("its tables are of version %d, and this program knows version %d", had, version)
	}
	return true, err
}
