package memory

import (
	"context"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// Suspend takes a task out of work; see stage.Store.
func (s *Store) Suspend(ctx context.Context, id stage.ID) (bool, error) {
	return s.request(ctx, id, func(e *entry, _ time.Time) bool {
		switch {
		case e.task.Due.IsZero() || e.task.Wanted != stage.Nothing:
			return false
		case e.task.Status == stage.InProcessing:
			e.task.Wanted = stage.Suspension
		default:
			e.task.Status = stage.Suspended
			s.setDue(e, time.Time{})
		}
		return true
	})
}

// Resume puts a task back to work; see stage.Store.
func (s *Store) Resume(ctx context.Context, id stage.ID, failed bool) (bool, error) {
	return s.request(ctx, id, func(e *entry, now time.Time) bool {
		switch {
		case e.task.Wanted == stage.Suspension:
			e.task.Wanted = stage.Nothing
			return true
		case e.task.Status == stage.Suspended:
		case e.task.Status == stage.Error && failed:
			e.task.Attempt = 0
		default:
			return false
		}
		e.task.Status = stage.Resumed
		s.setDue(e, now)
		return true
	})
}

// Cancel ends a task; see stage.Store.
func (s *Store) Cancel(ctx context.Context, id stage.ID) (bool, error) {
	return s.request(ctx, id, func(e *entry, _ time.Time) bool {
		switch {
		case e.task.Status == stage.Cancelled || e.task.Wanted == stage.Ending:
			return false
		case e.task.Status == stage.Normal && e.task.Due.IsZero(): // finished
			return false
		case e.task.Status == stage.InProcessing:
			e.task.Wanted = stage.Ending
		default:
			e.task.Status = stage.Cancelled
			s.setDue(e, time.Time{})
		}
		return true
	})
}

// request lets anybody change a task. change tells whether it did.
func (s *Store) request(ctx context.Context, id stage.ID, change func(*entry, time.Time) bool) (bool, error) {
	if err := s.acquire(ctx); err != nil {
		return false, err
	}
	defer s.release()
	e, err := s.find(id)
	if err != nil {
		return false, err
	}
	now := s.now()
	changed := change(e, now)
	if changed {
		e.task.Changed = now
	}
	return changed, nil
}
