package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Tick costs one transaction, whatever the number of ticks, and none for none.
func (s *tasks) Tick(ctx context.Context, ticks ...store.Tick) (now time.Time, last []time.Time, err error) {
	if len(ticks) == 0 {
		return s.now(), nil, ctx.Err()
	}
	err = s.write(ctx, "tick", func(tx *sql.Tx) error {
		now, last = s.now(), make([]time.Time, len(ticks))
		var tasks []store.NewTask
		for i, t := range ticks {
			record, err := one(tx.Stmt(s.tick).QueryRow(t.Name), func(r row, last *time.Time) error { return r.Scan((*moment)(last)) })
			if err != nil {
				return err
			}
			if record == nil {
				record = new(time.Time)
			}
			var runs bool
			if last[i], runs = transition.Tick(*record, t, now); runs {
				tasks = append(tasks, t.Tasks...)
			}
			if !last[i].Equal(*record) {
				if _, err := tx.Stmt(s.ticked).Exec(t.Name, milliseconds(last[i])); err != nil {
					return err
				}
			}
		}
		_, err := s.insert(tx, tasks)
		return err
	})
	return now, last, err
}
