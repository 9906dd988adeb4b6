package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Tick costs one transaction, whatever the number of ticks, and none for none.
func (s *tasks) Tick(ctx context.Context, ticks ...store.Tick) (ticked store.Ticked, err error) {
	if len(ticks) == 0 {
		return committed(store.Ticked{Now: s.now()}, ctx.Err())
	}
	err = s.write(ctx, "tick", func(tx *sql.Tx) error {
		ticked = store.Ticked{Now: s.now(), Last: make([]time.Time, len(ticks))}
		var tasks []store.NewTask
		for i, t := range ticks {
			record, err := s.record(tx, t.Name)
			if err != nil {
				return err
			}
			var runs bool
			if ticked.Last[i], runs = transition.Tick(record, t, ticked.Now); runs {
				tasks = append(tasks, t.Tasks...)
			}
			if !ticked.Last[i].Equal(record) {
				if _, err := tx.Stmt(s.ticked).Exec(t.Name, milliseconds(ticked.Last[i])); err != nil {
					return err
				}
			}
		}
		_, err := s.insert(tx, tasks)
		return err
	})
	return committed(ticked, err)
}

// record returns the latest tick of a name, or the zero Time.
func (s *tasks) record(tx *sql.Tx, name string) (last time.Time, err error) {
	var ms int64
	switch err := tx.Stmt(s.tick).QueryRow(name).Scan(&ms); {
	case errors.Is(err, sql.ErrNoRows):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, err
	}
	return at(ms), nil
}
