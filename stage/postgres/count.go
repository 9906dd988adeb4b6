package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// counting makes a table of counts, written for the schema daimon. Each statement adds rows with the differences that it makes,
// so that no two transactions wait for each other; the sum of all rows is what there is. Of about each thousandth statement the
// trigger puts rows together. It takes only rows that no other transaction does, and none in a snapshot of its own, in which it
// would fail if another one has. Triggers with these tables of rows fire for all columns: a heartbeat makes no difference.
const counting = `
	CREATE TABLE IF NOT EXISTS daimon.count (
		kind   text   NOT NULL,
		stage  text   NOT NULL,
		status text   NOT NULL,
		n      bigint NOT NULL
	) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);

	LOCK TABLE daimon.task IN SHARE ROW EXCLUSIVE MODE;
	DELETE FROM daimon.count;
	INSERT INTO daimon.count SELECT kind, stage, status, count(*) FROM daimon.task GROUP BY kind, stage, status;

	CREATE OR REPLACE FUNCTION daimon.count_together() RETURNS void LANGUAGE plpgsql SET jit = off AS $$
	BEGIN
		WITH few AS (
			DELETE FROM daimon.count WHERE ctid = ANY (ARRAY(SELECT ctid FROM daimon.count LIMIT 20000 FOR UPDATE SKIP LOCKED)) RETURNING *
		)
		INSERT INTO daimon.count SELECT kind, stage, status, sum(n) FROM few GROUP BY kind, stage, status HAVING sum(n) <> 0;
	END $$;

	CREATE OR REPLACE FUNCTION daimon.count_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF TG_OP = 'UPDATE' THEN
			INSERT INTO daimon.count SELECT kind, stage, status, sum(n) FROM (
				SELECT kind, stage, status, -1 AS n FROM before UNION ALL SELECT kind, stage, status, 1 FROM behind
			) AS moved GROUP BY kind, stage, status HAVING sum(n) <> 0;
		ELSIF TG_OP = 'INSERT' THEN
			INSERT INTO daimon.count SELECT kind, stage, status, count(*) FROM behind GROUP BY kind, stage, status;
		ELSIF TG_OP = 'DELETE' THEN
			INSERT INTO daimon.count SELECT kind, stage, status, -count(*) FROM before GROUP BY kind, stage, status;
		ELSE
			DELETE FROM daimon.count;
		END IF;
		IF random() < 0.001 AND current_setting('transaction_isolation') = 'read committed' THEN
			PERFORM daimon.count_together();
		END IF;
		RETURN NULL;
	END $$;

	CREATE TRIGGER count_insert AFTER INSERT ON daimon.task
		REFERENCING NEW TABLE AS behind FOR EACH STATEMENT EXECUTE FUNCTION daimon.count_tasks();
	CREATE TRIGGER count_update AFTER UPDATE ON daimon.task
		REFERENCING OLD TABLE AS before NEW TABLE AS behind FOR EACH STATEMENT EXECUTE FUNCTION daimon.count_tasks();
	CREATE TRIGGER count_delete AFTER DELETE ON daimon.task
		REFERENCING OLD TABLE AS before FOR EACH STATEMENT EXECUTE FUNCTION daimon.count_tasks();
	CREATE TRIGGER count_truncate AFTER TRUNCATE ON daimon.task FOR EACH STATEMENT EXECUTE FUNCTION daimon.count_tasks();`

// count sees to it that the database counts if begin is set, and notes whether it does.
func (s *tasks) count(ctx context.Context, begin bool) error {
	const counts = `SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = to_regclass($1) AND tgname = 'count_update')`
	table := pgx.Identifier{s.schema, "task"}.Sanitize()
	if err := s.pool.QueryRow(ctx, counts, table).Scan(&s.counted); err != nil || s.counted || !begin {
		return err
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext($1))`, "daimon "+s.schema); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, counts, table).Scan(&s.counted); err != nil || s.counted {
			return err
		}
		_, err := tx.Exec(ctx, in(s.schema, counting)) // several statements
		return err
	})
	s.counted = err == nil
	return err
}

// Counts reads all tasks, unless Config.Counts is set.
func (s *tasks) Counts(ctx context.Context) ([]store.Count, error) {
	text := `SELECT kind, stage, status, count(*)::bigint FROM daimon.task GROUP BY kind, stage, status`
	if s.counted {
		text = `SELECT kind, stage, status, sum(n)::bigint FROM daimon.count GROUP BY kind, stage, status HAVING sum(n) > 0`
	}
	// Compiling the statement would take longer than executing it.
	all, err := collectWith(ctx, s.pool, `SELECT set_config('jit', 'off', true)`, pgx.RowToStructByPos[store.Count], s.sql.adapted(text))
	slices.SortFunc(all, transition.CountOrder)
	return all, s.failed(ctx, "counts", err)
}
