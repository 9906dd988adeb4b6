package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
)

// schema makes the tables.
//
//go:embed schema.sql
var schema string

const version = 1

// create makes the tables, unless they are there. Without writing to the file it does not wait for writers.
func (s *database) create(ctx context.Context) error {
	var had int
	if err := s.reader.QueryRow(`SELECT number FROM daimon_version`).Scan(&had); err == nil && had == version {
		return nil
	}
	return s.write(ctx, "make the tables", func(tx *sql.Tx) error {
		var there bool
		if err := tx.QueryRow(`SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'daimon_version'`).Scan(&there); err != nil {
			return err
		}
		if !there {
			_, err := tx.Exec(schema)
			return err
		}
		err := tx.QueryRow(`SELECT number FROM daimon_version`).Scan(&had)
		if err == nil && had != version {
			err = fmt.Errorf("its tables are of version %d, and this program knows version %d", had, version)
		}
		return err
	})
}
