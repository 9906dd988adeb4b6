package postgres

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/migration"
)

//go:embed migrations/*.sql
var files embed.FS

// migrations are written for the schema daimon.
var migrations = migration.Read(files)

// newSchema is for a database that has none. An administrator may have made it, for a user who may not.
const newSchema = "CREATE SCHEMA daimon;\n\n"

// bookkeeping is the table of the migrations that a schema has had.
const bookkeeping = `CREATE TABLE daimon.migration (
	number  integer     PRIMARY KEY,
	name    text        NOT NULL,
	applied timestamptz NOT NULL DEFAULT now()
);
`

// in returns SQL for another schema than daimon.
func in(schema, sql string) string {
	name := pgx.Identifier{schema}.Sanitize()
	return strings.NewReplacer("SCHEMA daimon", "SCHEMA "+name, "daimon.", name+".").Replace(sql)
}

// record returns the SQL that records that m was applied.
func record(m migration.Migration) string {
	return fmt.Sprintf("INSERT INTO daimon.migration (number, name) VALUES (%d, '%s');\n", m.Number, m.Name)
}

// Migrations returns all that Open does to a database without the schema, as SQL, to read it or to run it with more rights
// than the program has. It is one transaction. "" means the schema daimon.
//
// To bring an older schema up to date, use Open, which applies only what is missing.
func Migrations(schema string) string {
	text := newSchema + bookkeeping
	for _, m := range migrations {
		text += fmt.Sprintf("\n-- %s\n%s\n%s", m.Name, m.SQL, record(m))
	}
	return "BEGIN;\n" + in(orDefault(schema), text) + "COMMIT;\n"
}

// migrate applies the migrations that the schema has not had, in one transaction that keeps others out which do the same.
func (s *Store) migrate(ctx context.Context) error {
	if had, err := s.had(ctx, s.pool); err != nil || had == len(migrations) {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext($1))`, "daimon "+s.schema); err != nil {
			return err
		}
		had, err := s.had(ctx, tx)
		if err != nil {
			return err
		}
		var text string
		if had < 0 {
			text, had = bookkeeping, 0
			var there bool
			if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = $1)`,
				s.schema).Scan(&there); err != nil {
				return err
			}
			if !there {
				text = newSchema + text
			}
		}
		for _, m := range migrations[had:] {
			text += m.SQL + record(m)
		}
		_, err = tx.Exec(ctx, in(s.schema, text)) // several statements
		return err
	})
}

// had returns the number of the latest migration that the schema has had, or -1 if it has no tables.
func (s *Store) had(ctx context.Context, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (had int, err error) {
	var there bool
	// to_regclass would not see, after the wait for the lock, what another process has made meanwhile.
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'migration')`,
		s.schema).Scan(&there)
	if err != nil || !there {
		return -1, err
	}
	err = db.QueryRow(ctx, `SELECT coalesce(max(number), 0) FROM `+pgx.Identifier{s.schema, "migration"}.Sanitize()).Scan(&had)
	if err == nil && had > len(migrations) {
		err = fmt.Errorf("the schema %s has had migration %d, of which this program, with %d, is too old to know",
			s.schema, had, len(migrations))
	}
	return had, err
}
