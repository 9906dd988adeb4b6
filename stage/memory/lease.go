package memory

import (
	"context"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// Claim gives out tasks that are due; see stage.Store.
func (s *Store) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	now := s.now()
	taken := s.takeDue(c.Kinds, c.Limit, now)
	defer func() {
		for _, e := range taken {
			s.setDue(e, e.task.Due)
		}
	}()
	after := make([]stage.Task, len(taken))
	for i, e := range taken {
		t := e.snapshot() // for c.Enter, which may panic: nothing has changed until all have been asked
		after[i] = e.task
		after[i].Stage, after[i].Attempt = c.Enter(&t)
	}
	for i, e := range taken {
		e.task = after[i]
		e.task.Status = stage.InProcessing
		e.task.Worker = c.Worker
		e.task.Token++
		e.task.Due = now.Add(c.Length)
		e.task.Changed = now
		after[i] = e.snapshot()
	}
	return after, nil
}

// Enter shows a task at a stage; see stage.Store.
func (s *Store) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	if err := s.acquire(ctx); err != nil {
		return stage.Task{}, err
	}
	defer s.release()
	now := s.now()
	e, err := s.held(l, now)
	if err != nil {
		return stage.Task{}, err
	}
	if err := e.wanted(); err != nil {
		return stage.Task{}, err
	}
	e.task.Stage = at
	e.task.Attempt = attempt
	e.task.Changed = now
	return e.snapshot(), nil
}

// Finish ends a dynamic stage; see stage.Store. commit is called under the lock of the store: it must not call any of
// its methods, and all of them wait for it.
func (s *Store) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	now := s.now()
	if s.finished(l, p, now) {
		return nil
	}
	e, err := s.held(l, now)
	if err != nil {
		return err
	}
	if err := e.wanted(); err != nil {
		return err
	}
	if e.task.Stage != p.From {
		return stage.ErrLeaseLost // somebody else has moved it, or this call has come late
	}
	tx := tx{data: e.task.Data}
	if commit != nil {
		if err := commit(&tx); err != nil {
			return err
		}
	}
	e.task.Stage = p.To
	e.task.Data = tx.data
	e.task.Attempt = 0
	e.task.Failure = ""
	e.task.Changed = now
	if p.Last {
		e.task.Status = stage.Normal
		s.setDue(e, time.Time{})
	}
	return nil
}

// tx keeps what is to be written until commit has returned.
type tx struct{ data []byte }

func (t *tx) SetData(data []byte) { t.data = copied(data) }

// Return gives a task back; see stage.Store.
func (s *Store) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	if err := s.acquire(ctx); err != nil {
		return "", err
	}
	defer s.release()
	now := s.now()
	e, err := s.held(l, now)
	if err != nil {
		return "", err
	}
	var due time.Time
	if r.Runs {
		due = now.Add(r.After)
	}
	switch e.task.Wanted {
	case stage.Suspension:
		r.Status, due = stage.Suspended, time.Time{}
	case stage.Ending:
		r.Status, due = stage.Cancelled, time.Time{}
	}
	e.task.Stage = r.Stage
	e.task.Status = r.Status
	e.task.Wanted = stage.Nothing
	e.task.Attempt = r.Attempt
	e.task.Failure = stage.Legible(r.Failure)
	e.task.Changed = now
	s.setDue(e, due)
	return r.Status, nil
}

// Heartbeat renews leases; see stage.Store.
func (s *Store) Heartbeat(ctx context.Context, leases []stage.Lease, length time.Duration) ([]stage.Beat, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	now := s.now()
	beats := make([]stage.Beat, len(leases))
	ends := make(map[*entry]time.Time, len(leases)) // set when all have been answered: a lease may be there twice
	for i, l := range leases {
		e, err := s.held(l, now)
		if err != nil {
			beats[i].Lost = true
			continue
		}
		beats[i].Wanted = e.task.Wanted
		ends[e] = now.Add(length)
	}
	for e, end := range ends {
		s.setDue(e, end)
	}
	return beats, nil
}

// held returns the task whose present lease l is.
func (s *Store) held(l stage.Lease, now time.Time) (*entry, error) {
	e, err := s.find(l.Task)
	if err != nil || !e.live(l, now) {
		return nil, stage.ErrLeaseLost
	}
	return e, nil
}

// finished tells whether the holder of l has made this passage before, and nothing since.
func (s *Store) finished(l stage.Lease, p stage.Passage, now time.Time) bool {
	e, err := s.find(l.Task)
	switch {
	case err != nil || e.task.Token != l.Token || e.task.Stage != p.To:
		return false
	case p.Last:
		return e.task.Status == stage.Normal && e.task.Due.IsZero()
	}
	return e.live(l, now)
}

// wanted is what somebody has asked for, as an error.
func (e *entry) wanted() error {
	switch e.task.Wanted {
	case stage.Suspension:
		return stage.ErrSuspended
	case stage.Ending:
		return stage.ErrCancelled
	}
	return nil
}
