package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

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
	err := s.change(ctx, what, id, func(t *stage.Task, now time.Time) (func(*pgx.Batch), error) {
		switch {
		case t == nil:
			return nil, transition.NotFound(id)
		case !rule(t, now):
			return nil, errUnchanged
		case t.Wanted != stage.Nothing:
			return s.hint(hintOfRequest(id)), nil
		case t.Status == stage.Resumed:
			return s.hint(hintOfKind(t.Kind)), nil
		}
		return nil, nil
	})
	if errors.Is(err, errUnchanged) {
		return false, nil
	}
	return err == nil, err
}

// hint notifies others in a transaction.
func (s *tasks) hint(of string) func(*pgx.Batch) {
	return func(b *pgx.Batch) { b.Queue(s.sql.notify, s.schema, of) }
}

func (s *tasks) Get(ctx context.Context, id stage.ID) (stage.Task, error) {
	found, err := s.read(ctx, "get", s.sql.get, id)
	if err == nil && len(found) == 0 {
		err = transition.NotFound(id)
	}
	if err != nil {
		return stage.Task{}, err
	}
	return found[0], nil
}
