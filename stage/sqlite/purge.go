package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

const purge = `DELETE FROM daimon_task WHERE id IN (
	SELECT id FROM daimon_task INDEXED BY daimon_task_ended
	WHERE ` + hasEnded + ` AND status = ?1 AND changed <= ?2
	ORDER BY changed, id LIMIT ?3)`

// Purge is one transaction, for which other writes wait: limit should not be above some thousand.
func (s *tasks) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	var n int64
	err := s.write(ctx, "purge", func(tx *sql.Tx) error {
		r, err := tx.Exec(purge, string(status), s.now().Add(-age).UnixMilli(), max(0, limit))
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	return committed(int(n), err)
}
