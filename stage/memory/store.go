package memory

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// Store is a stage.Store in memory. New makes one.
type Store struct {
	now   func() time.Time
	lock  chan struct{} // full while somebody holds it: a mutex for which one can wait no longer than a context
	tasks []*entry      // the task with number i+1 at i
	due   map[string]*agenda
}

var _ stage.Store = (*Store)(nil)

// New returns an empty Store with a clock of its own; nil is time.Now. now is called by whoever calls a method, one
// at a time, and must not return the zero Time, which would be never.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, lock: make(chan struct{}, 1), due: map[string]*agenda{}}
}

// acquire takes the lock, unless ctx has ended or ends before.
func (s *Store) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) release() { <-s.lock }

// Enqueue adds a task; see stage.Store. It keeps a copy of data.
func (s *Store) Enqueue(ctx context.Context, kind, at string, data []byte) (stage.ID, error) {
	if err := s.acquire(ctx); err != nil {
		return 0, err
	}
	defer s.release()
	now := s.now()
	e := &entry{place: nowhere, task: stage.Task{
		ID: stage.ID(len(s.tasks) + 1), Kind: kind, Stage: at, Status: stage.Normal, Data: copied(data), Created: now,
		Changed: now,
	}}
	s.tasks = append(s.tasks, e)
	s.setDue(e, now)
	return e.task.ID, nil
}

// Get returns a task; see stage.Store. Its Data is a copy.
func (s *Store) Get(ctx context.Context, id stage.ID) (stage.Task, error) {
	if err := s.acquire(ctx); err != nil {
		return stage.Task{}, err
	}
	defer s.release()
	e, err := s.find(id)
	if err != nil {
		return stage.Task{}, err
	}
	return e.snapshot(), nil
}

// List returns tasks; see stage.Store. Their Data are copies.
func (s *Store) List(ctx context.Context, f stage.Filter) ([]stage.Task, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	defer s.release()
	var found []stage.Task
	for _, e := range s.tasks[min(max(f.After, 0), stage.ID(len(s.tasks))):] {
		if f.Limit > 0 && len(found) == f.Limit {
			break
		}
		if e.passes(f) {
			found = append(found, e.snapshot())
		}
	}
	return found, nil
}

// find returns the entry of a task.
func (s *Store) find(id stage.ID) (*entry, error) {
	if id < 1 || id > stage.ID(len(s.tasks)) {
		return nil, fmt.Errorf("%w: %d", stage.ErrNotFound, id)
	}
	return s.tasks[id-1], nil
}

// entry is a task and its place in the agenda of its kind.
type entry struct {
	task  stage.Task
	place int // nowhere, exactly when task.Due is zero
}

const nowhere = -1

func (e *entry) snapshot() stage.Task {
	t := e.task
	t.Data = copied(t.Data)
	return t
}

func (e *entry) passes(f stage.Filter) bool {
	return (f.Kind == "" || f.Kind == e.task.Kind) &&
		(f.Stage == "" || f.Stage == e.task.Stage) &&
		(f.Status == "" || f.Status == e.task.Status) &&
		(!f.Running || e.task.Runs())
}

// copied keeps the bytes of the caller and of the store apart. Nothing is nil.
func copied(data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	return bytes.Clone(data)
}
