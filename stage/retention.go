package stage

import (
	"context"
	"time"

	"github.com/daimon-go/daimon/stage/store"
)

const (
	mostPurged = 1000        // in a call of the store
	purgeEvery = time.Minute // at most between two
)

// retaining returns what a poller does that deletes tasks that have ended in a status.
func (e *Engine) retaining(s store.Status) func(context.Context) (time.Duration, error) {
	p := store.Purge{Status: s, Age: e.cfg.Retention[s], Limit: mostPurged}
	every := max(e.cfg.Poll, min(purgeEvery, p.Age/10))
	return func(ctx context.Context) (time.Duration, error) {
		n, err := e.cfg.Store.Purge(ctx, p)
		if err != nil {
			return 0, err
		}
		e.answered()
		if n == p.Limit {
			return 0, nil
		}
		return e.varied(every), nil
	}
}
