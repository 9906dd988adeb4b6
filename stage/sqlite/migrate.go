package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"strings"

	"github.com/daimon-go/daimon/stage/internal/migration"
)

//go:embed migrations/*.sql
var files embed.FS

var migrations = migration.Read(files)

// bookkeeping is the table of the migrations that a database has had.
const bookkeeping = `CREATE TABLE IF NOT EXISTS daimon_migration (
	number  INTEGER PRIMARY KEY,
	name    TEXT    NOT NULL,
	applied INTEGER NOT NULL
) STRICT;
`

// record returns the SQL that records that m was applied. Older versions of the sqlite3 program can run it too, which know
// no fractions of a second.
func record(m migration.Migration) string {
	return fmt.Sprintf("INSERT INTO daimon_migration (number, name, applied)\n"+
		"VALUES (%d, '%s', strftime('%%s', 'now') * 1000) ON CONFLICT (number) DO NOTHING;\n", m.Number, m.Name)
}

// Migrations returns all that Open does to a new database, as SQL, to read it or to run it:
//
//	sqlite3 tasks.db < that
//
// Each migration is one transaction, which records itself in daimon_migration, so Open finds nothing more to do. To bring
// an older database up to date, use Open, which applies only what is missing: this text applies everything. The migrations
// so far only make what does not exist, and an index anew, and may be applied twice.
func Migrations() string {
	var text strings.Builder
	for _, m := range migrations {
		fmt.Fprintf(&text, "-- %s\nBEGIN IMMEDIATE;\n%s%s%sCOMMIT;\n", m.Name, bookkeeping, m.SQL, record(m))
	}
	return text.String()
}

// migrate applies the migrations that the database has not had. Each is a transaction of its own, which first looks whether
// another process has been faster.
func (s *database) migrate(ctx context.Context) error {
	var had int
	err := s.reader.QueryRow(`SELECT max(number) FROM daimon_migration`).Scan(&had)
	for more := err != nil || had != len(migrations); more; { // else without waiting for writers
		err := s.write(ctx, "migrate", func(tx *sql.Tx) (err error) {
			more, err = s.migrateOnce(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrateOnce applies the next migration, and reports whether there was one.
func (s *database) migrateOnce(tx *sql.Tx) (bool, error) {
	if _, err := tx.Exec(bookkeeping); err != nil {
		return false, err
	}
	var had int
	if err := tx.QueryRow(`SELECT coalesce(max(number), 0) FROM daimon_migration`).Scan(&had); err != nil {
		return false, err
	}
	if had > len(migrations) {
		return false, fmt.Errorf("it has had migration %d, of which this program, with %d, is too old to know", had, len(migrations))
	}
	if had == len(migrations) {
		return false, nil
	}
	next := migrations[had]
	if _, err := tx.Exec(next.SQL + record(next)); err != nil {
		return false, fmt.Errorf("migration %s: %w", next.Name, err)
	}
	return true, nil
}
