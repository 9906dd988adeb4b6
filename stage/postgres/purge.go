package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/store"
)

const purge = `
	DELETE FROM daimon.task WHERE id = ANY (ARRAY(
		SELECT id FROM daimon.task
		WHERE status = $1 AND ended IS NOT NULL AND ended <= (SELECT clock_timestamp() - $2::bigint * interval '1 microsecond')
		ORDER BY ended, id LIMIT $3 FOR UPDATE SKIP LOCKED
	)) RETURNING id`

// Purge is one statement, and waits for no row.
func (s *tasks) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	ids, err := collectWith(ctx, s.pool, inOrder, pgx.RowTo[store.ID], s.sql.adapted(purge), string(status), microseconds(age), max(0, limit))
	return len(ids), s.failed(ctx, "purge", err)
}
