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
func (s *tasks) Tick(ctx context.Context, ticks ...store.Tick) (ticked store.Ticked, err error) {
	if len(ticks) == 0 {
		err := s.pool.QueryRow(ctx, s.sql.now).Scan(&ticked.Now)
		ticked.Now = ticked.Now.UTC()
		return ticked, s.failed(ctx, "tick", err)
	}
	for {
		var missing []string
		err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			ticked, missing, err = s.tick(ctx, tx, ticks)
			return err
		})
		if err == nil && len(missing) > 0 {
			_, err = s.pool.Exec(ctx, s.sql.begin, missing)
		}
		switch {
		case err != nil:
			return store.Ticked{}, s.failed(ctx, "tick", err)
		case len(missing) == 0:
			return ticked, nil
		}
	}
}

// tick runs ticks in a transaction, unless there are names without a record.
func (s *tasks) tick(ctx context.Context, tx pgx.Tx, ticks []store.Tick) (ticked store.Ticked, missing []string, err error) {
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
	b.Queue(s.sql.now).QueryRow(func(row pgx.Row) error { return row.Scan(&ticked.Now) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return ticked, nil, err
	}
	ticked.Now = ticked.Now.UTC()
	var changed []string
	var last []time.Time
	var tasks []store.NewTask
	for _, t := range ticks {
		record := records[t.Name]
		if record.IsZero() {
			missing = append(missing, t.Name)
		}
		became, runs := transition.Tick(record, t, ticked.Now)
		if ticked.Last = append(ticked.Last, became); runs {
			changed, last, tasks = append(changed, t.Name), append(last, became), append(tasks, t.Tasks...)
		}
	}
	if len(missing) > 0 || len(changed) == 0 {
		return ticked, missing, nil
	}
	if _, err := tx.Exec(ctx, s.sql.ticked, changed, last); err != nil {
		return ticked, nil, err
	}
	_, err = s.insert(ctx, tx, tasks)
	return ticked, nil, err
}
