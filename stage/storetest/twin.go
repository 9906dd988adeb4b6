package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage"
)

// twin is a slow and obvious stage.Store: a map, and the rules as they are written down, in plain ifs. It belongs to
// one goroutine.
type twin struct {
	now   time.Time
	tasks map[stage.ID]stage.Task

	// What a store may choose.
	id     stage.ID           // of the next task
	tokens map[stage.ID]int64 // of the next claim
}

var _ stage.Store = (*twin)(nil)

func (s *twin) Enqueue(_ context.Context, kind, at string, data []byte) (stage.ID, error) {
	s.tasks[s.id] = stage.Task{
		ID: s.id, Kind: kind, Stage: at, Status: stage.Normal, Data: data, Due: s.now, Created: s.now, Changed: s.now,
	}
	return s.id, nil
}

func (s *twin) Claim(_ context.Context, c stage.Claim) ([]stage.Task, error) {
	var due []stage.Task
	for _, t := range s.tasks {
		if slices.Contains(c.Kinds, t.Kind) && !t.Due.IsZero() && !t.Due.After(s.now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(t, u stage.Task) int {
		if !t.Due.Equal(u.Due) {
			return t.Due.Compare(u.Due)
		}
		return int(t.ID - u.ID)
	})
	due = due[:min(len(due), max(0, c.Limit))]
	for i := range due {
		t := due[i]
		t.Stage, t.Attempt = c.Enter(&due[i])
		t.Status = stage.InProcessing
		t.Worker = c.Worker
		t.Token = max(t.Token+1, s.tokens[t.ID])
		t.Due = s.now.Add(c.Length)
		t.Changed = s.now
		s.tasks[t.ID] = t
		due[i] = t
	}
	return due, nil
}

// holds tells whether l is a lease that has not ended.
func (s *twin) holds(l stage.Lease) bool {
	t, ok := s.tasks[l.Task]
	return ok && t.Status == stage.InProcessing && t.Token == l.Token && t.Due.After(s.now)
}

func (s *twin) Enter(_ context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	if !s.holds(l) {
		return stage.Task{}, stage.ErrLeaseLost
	}
	t := s.tasks[l.Task]
	if t.Wanted == stage.Suspension {
		return stage.Task{}, stage.ErrSuspended
	}
	if t.Wanted == stage.Ending {
		return stage.Task{}, stage.ErrCancelled
	}
	t.Stage = at
	t.Attempt = attempt
	t.Changed = s.now
	s.tasks[t.ID] = t
	return t, nil
}

func (s *twin) Finish(_ context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	t := s.tasks[l.Task]
	if p.Last && t.ID != 0 && t.Token == l.Token && t.Status == stage.Normal && t.Due.IsZero() && t.Stage == p.To {
		return nil
	}
	if !s.holds(l) {
		return stage.ErrLeaseLost
	}
	if !p.Last && t.Stage == p.To {
		return nil
	}
	if t.Wanted == stage.Suspension {
		return stage.ErrSuspended
	}
	if t.Wanted == stage.Ending {
		return stage.ErrCancelled
	}
	if t.Stage != p.From {
		return stage.ErrLeaseLost
	}
	if commit != nil {
		if err := commit(twinTx{&t}); err != nil {
			return err
		}
	}
	t.Stage = p.To
	t.Attempt = 0
	t.Failure = ""
	t.Changed = s.now
	if p.Last {
		t.Status = stage.Normal
		t.Due = time.Time{}
	}
	s.tasks[t.ID] = t
	return nil
}

type twinTx struct{ t *stage.Task }

func (tx twinTx) SetData(data []byte) { tx.t.Data = data }

func (s *twin) Return(_ context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	if !s.holds(l) {
		return "", stage.ErrLeaseLost
	}
	t := s.tasks[l.Task]
	t.Stage = r.Stage
	t.Status = r.Status
	t.Attempt = r.Attempt
	t.Failure = r.Failure
	t.Changed = s.now
	t.Due = time.Time{}
	if r.Runs {
		t.Due = s.now.Add(r.After)
	}
	if t.Wanted == stage.Suspension {
		t.Status = stage.Suspended
		t.Due = time.Time{}
	}
	if t.Wanted == stage.Ending {
		t.Status = stage.Cancelled
		t.Due = time.Time{}
	}
	t.Wanted = stage.Nothing
	s.tasks[t.ID] = t
	return t.Status, nil
}

func (s *twin) Heartbeat(_ context.Context, leases []stage.Lease, length time.Duration) ([]stage.Beat, error) {
	var beats []stage.Beat
	for _, l := range leases {
		beats = append(beats, stage.Beat{Lost: !s.holds(l)})
		if s.holds(l) {
			beats[len(beats)-1].Wanted = s.tasks[l.Task].Wanted
		}
	}
	for i, l := range leases {
		if !beats[i].Lost {
			t := s.tasks[l.Task]
			t.Due = s.now.Add(length)
			s.tasks[t.ID] = t
		}
	}
	return beats, nil
}

func (s *twin) Suspend(_ context.Context, id stage.ID) (bool, error) {
	t, ok := s.tasks[id]
	if !ok {
		return false, stage.ErrNotFound
	}
	if t.Due.IsZero() || t.Wanted != stage.Nothing {
		return false, nil
	}
	if t.Status == stage.InProcessing {
		t.Wanted = stage.Suspension
	} else {
		t.Status = stage.Suspended
		t.Due = time.Time{}
	}
	t.Changed = s.now
	s.tasks[id] = t
	return true, nil
}

func (s *twin) Resume(_ context.Context, id stage.ID, failed bool) (bool, error) {
	t, ok := s.tasks[id]
	if !ok {
		return false, stage.ErrNotFound
	}
	if t.Wanted == stage.Suspension {
		t.Wanted = stage.Nothing
		t.Changed = s.now
		s.tasks[id] = t
		return true, nil
	}
	if t.Status == stage.Error && failed {
		t.Attempt = 0
	} else if t.Status != stage.Suspended {
		return false, nil
	}
	t.Status = stage.Resumed
	t.Due = s.now
	t.Changed = s.now
	s.tasks[id] = t
	return true, nil
}

func (s *twin) Cancel(_ context.Context, id stage.ID) (bool, error) {
	t, ok := s.tasks[id]
	if !ok {
		return false, stage.ErrNotFound
	}
	finished := t.Status == stage.Normal && t.Due.IsZero()
	if finished || t.Status == stage.Cancelled || t.Wanted == stage.Ending {
		return false, nil
	}
	if t.Status == stage.InProcessing {
		t.Wanted = stage.Ending
	} else {
		t.Status = stage.Cancelled
		t.Due = time.Time{}
	}
	t.Changed = s.now
	s.tasks[id] = t
	return true, nil
}

func (s *twin) Get(_ context.Context, id stage.ID) (stage.Task, error) {
	t, ok := s.tasks[id]
	if !ok {
		return t, stage.ErrNotFound
	}
	return t, nil
}

func (s *twin) List(_ context.Context, f stage.Filter) (all []stage.Task, _ error) {
	for _, id := range slices.Sorted(maps.Keys(s.tasks)) {
		t := s.tasks[id]
		if id <= f.After {
			continue
		}
		if f.Kind != "" && f.Kind != t.Kind || f.Stage != "" && f.Stage != t.Stage || f.Status != "" && f.Status != t.Status {
			continue
		}
		if f.Running && t.Due.IsZero() {
			continue
		}
		if f.Limit > 0 && len(all) == f.Limit {
			break
		}
		all = append(all, t)
	}
	return all, nil
}
