package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Tick is one transaction, whatever the number of ticks, and a statement if there are none. Names that have no record get one
// before that.
func (s *tasks) Tick(ctx context.Context, ticks ...store.Tick) (now time.Time, last []time.Time, err error) {
	if len(ticks) == 0 {
		err := s.pool.QueryRow(ctx, s.sql.now).Scan(&now)
		return now.UTC(), nil, s.failed(ctx, "tick", err)
	}
	for {
		var missing []string
		err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			now, last, missing, err = s.tick(ctx, tx, ticks)
			return err
		})
		if err == nil && len(missing) > 0 {
			_, err = s.pool.Exec(ctx, s.sql.begin, missing)
		}
		if err != nil || len(missing) == 0 {
			return now, last, s.failed(ctx, "tick", err)
		}
	}
}

// tick runs ticks in a transaction, unless there are names without a record.
func (s *tasks) tick(ctx context.Context, tx pgx.Tx, ticks []store.Tick) (now time.Time, last []time.Time, missing []string, err error) {
	names := make([]string, len(ticks))
	for i, t := range ticks {
		names[i] = t.Name
	}
	records := map[string]time.Time{}
	b := &pgx.Batch{}
	b.Queue(`SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $1, true)`,
		fmt.Sprint(patience(ctx).Milliseconds()))
	b.Queue(s.sql.ticks, names).Query(func(rows pgx.Rows) error {
		var name string
		var last time.Time
		_, err := pgx.ForEachRow(rows, []any{&name, &last}, func() error {
			records[name] = last.UTC()
			return nil
		})
		return err
	})
	b.Queue(s.sql.now).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return now, nil, nil, err
	}
	now = now.UTC()
	var changed []string
	var to []time.Time
	var tasks []store.NewTask
	for _, t := range ticks {
		record := records[t.Name]
		if record.IsZero() {
			missing = append(missing, t.Name)
		}
		became, runs := transition.Tick(record, t, now)
		if last = append(last, became); runs {
			changed, to, tasks = append(changed, t.Name), append(to, became), append(tasks, t.Tasks...)
		}
	}
	if len(missing) > 0 || len(changed) == 0 {
		return now, last, missing, nil
	}
	if _, err := tx.Exec(ctx, s.sql.ticked, changed, to); err != nil {
		return now, nil, nil, err
	}
	_, err = s.insert(ctx, tx, tasks)
	return now, last, nil, err
}
