package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// scanTask reads a row of columns, and further columns after them.
func scanTask(row pgx.Row, more ...any) (t store.Task, err error) {
	var due *time.Time
	all := append(make([]any, 0, 15+len(more)), &t.ID, &t.Kind, &t.Stage, &t.Status, &t.Wanted, &t.Data, &t.Attempt, &t.Failure,
		&due, &t.Worker, &t.Token, &t.Created, &t.Changed, &t.Progress, &t.ProgressStage)
	if err := row.Scan(append(all, more...)...); err != nil {
		return store.Task{}, err
	}
	if due != nil {
		t.Due = *due
	}
	transition.Scanned(&t)
	return t, nil
}

// values returns the arguments of save. A task in processing has no due there, and keeps the end of its lease.
func values(t *store.Task) []any {
	var due *time.Time
	if t.Runs() && t.Status != store.InProcessing {
		due = &t.Due
	}
	return []any{t.ID, t.Stage, string(t.Status), string(t.Wanted), t.Attempt, t.Failure, due, t.Changed}
}

// microseconds returns d as the database has it, rounded up, so that no lease is cut short.
func microseconds(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}
