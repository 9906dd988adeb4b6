package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Hold ends the upkeep in the background: from then on only Upkeep does any.
func (e *Engine) Hold() { e.keeping.Lock() }

// Upkeep does the whole upkeep at once.
func (e *Engine) Upkeep(ctx context.Context) error {
	err := e.beat(ctx)
	if err == nil {
		err = e.heal(ctx)
	}
	if err == nil {
		err = e.tidy(ctx)
	}
	return err
}

// Machine is the number of e in the table machine.
func (e *Engine) Machine() int64 { return e.machine }

// Pool returns the pool of e.
func (e *Engine) Pool() *pgxpool.Pool { return e.pool }

// OpenImpatient is Open with another time for answers.
func OpenImpatient(ctx context.Context, database string, o Options, answer time.Duration) (*Engine, error) {
	return open(ctx, database, o, answer)
}
