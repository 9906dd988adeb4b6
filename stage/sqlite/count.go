package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// counting makes a table of counts, which triggers keep. Heartbeats do not fire them.
const counting = `
	CREATE TABLE IF NOT EXISTS daimon_count (
		kind   TEXT    NOT NULL,
		stage  TEXT    NOT NULL,
		status TEXT    NOT NULL,
		n      INTEGER NOT NULL,

		PRIMARY KEY (kind, stage, status)
	) STRICT, WITHOUT ROWID;

	DELETE FROM daimon_count;
	INSERT INTO daimon_count SELECT kind, stage, status, count(*) FROM daimon_task GROUP BY kind, stage, status;

	CREATE TRIGGER daimon_count_insert AFTER INSERT ON daimon_task BEGIN
		INSERT INTO daimon_count VALUES (NEW.kind, NEW.stage, NEW.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
	END;
	CREATE TRIGGER daimon_count_update AFTER UPDATE OF kind, stage, status ON daimon_task
	WHEN OLD.status <> NEW.status OR OLD.stage <> NEW.stage OR OLD.kind <> NEW.kind BEGIN
		UPDATE daimon_count SET n = n - 1 WHERE kind = OLD.kind AND stage = OLD.stage AND status = OLD.status;
		INSERT INTO daimon_count VALUES (NEW.kind, NEW.stage, NEW.status, 1) ON CONFLICT DO UPDATE SET n = n + 1;
	END;
	CREATE TRIGGER daimon_count_delete AFTER DELETE ON daimon_task BEGIN
		UPDATE daimon_count SET n = n - 1 WHERE kind = OLD.kind AND stage = OLD.stage AND status = OLD.status;
	END;`

// count sees to it that the database counts if begin is set, and notes whether it does.
func (s *tasks) count(ctx context.Context, begin bool) error {
	const counts = `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'trigger' AND name = 'daimon_count_update'`
	if err := s.reader.QueryRow(counts).Scan(&s.counted); err != nil || s.counted || !begin {
		return s.failed("open", err)
	}
	err := s.write(ctx, "count", func(tx *sql.Tx) error {
		if err := tx.QueryRow(counts).Scan(&s.counted); err != nil || s.counted {
			return err
		}
		_, err := tx.Exec(counting)
		return err
	})
	s.counted = err == nil
	return err
}

// Counts waits for no write. It reads all tasks, unless Config.Counts is set.
func (s *tasks) Counts(ctx context.Context) ([]store.Count, error) {
	text := `SELECT kind, stage, status, count(*) FROM daimon_task GROUP BY kind, stage, status`
	if s.counted {
		text = `SELECT kind, stage, status, n FROM daimon_count WHERE n > 0`
	}
	all, err := read(ctx, s, "counts", func(r row, c *store.Count) error { return r.Scan(&c.Kind, &c.Stage, &c.Status, &c.N) }, text)
	slices.SortFunc(all, transition.CountOrder)
	return all, err
}
