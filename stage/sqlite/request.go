package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/transition"
)

func (s *tasks) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return s.request(ctx, "suspend", id, transition.Suspend)
}

func (s *tasks) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return s.request(ctx, "resume", id, transition.Resume(failed))
}

func (s *tasks) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	return s.request(ctx, "cancel", id, transition.Cancel)
}

// errUnchanged ends the transaction of a request that makes no difference.
var errUnchanged = errors.New("nothing has changed")

func (s *tasks) request(ctx context.Context, what string, id stage.ID, rule transition.Request) (bool, error) {
	err := s.change(ctx, what, id, func(t *stage.Task, now time.Time) (func(*sql.Tx) error, error) {
		switch {
		case t == nil:
			return nil, transition.NotFound(id)
		case !rule(t, now):
			return nil, errUnchanged
		}
		return nil, nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return err == nil, err
}

// Get waits for no write.
func (s *tasks) Get(ctx context.Context, id stage.ID) (stage.Task, error) {
	t, err := scanWhole(s.get.QueryRowContext(ctx, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = transition.NotFound(id)
	}
	return t, s.failed("get", because(ctx, err))
}

// because returns the error of ctx if that has ended: between two rows the driver only says that it was interrupted.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
