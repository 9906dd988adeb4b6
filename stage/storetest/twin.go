package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// twin is a slow and obvious store.Store: a map, and the rules of package transition. It belongs to one goroutine. The tables
// and the other tests of the suite show that the rules are right.
type twin struct {
	now     time.Time
	tasks   map[store.ID]store.Task
	tickets map[store.ID]store.Ticket // of the latest claims
	keys    map[[2]string]store.ID    // by kind and key
	ticks   map[string]time.Time      // by name
	paused  map[string]bool           // kinds

	failures map[store.ID][]store.Failure

	// What a store may choose.
	ids    []store.ID         // of the next tasks
	tokens map[store.ID]int64 // of the next claim
}

var _ store.Store = (*twin)(nil)

func newTwin() *twin {
	return &twin{
		tasks: map[store.ID]store.Task{}, tickets: map[store.ID]store.Ticket{}, keys: map[[2]string]store.ID{},
		ticks: map[string]time.Time{}, paused: map[string]bool{},
		failures: map[store.ID][]store.Failure{},
	}
}

func (s *twin) Enqueue(_ context.Context, tasks ...store.NewTask) (ids []store.ID, _ error) {
	given := map[[2]string]store.ID{} // in this call
	for i, n := range tasks {
		key := [2]string{n.Kind, n.Key}
		id, there := given[key]
		if !there {
			id, there = s.keys[key]
			there = there && transition.Stands(s.tasks[id].Created, n, s.now)
		}
		if n.Key == "" || !there {
			t := transition.New(n, s.now)
			t.ID = s.ids[i]
			id, s.tasks[t.ID] = t.ID, t
		}
		if n.Key != "" {
			given[key], s.keys[key] = id, id
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *twin) Tick(ctx context.Context, ticks ...store.Tick) (_ time.Time, last []time.Time, err error) {
	var tasks []store.NewTask
	for _, t := range ticks {
		record, runs := transition.Tick(s.ticks[t.Name], t, s.now)
		if s.ticks[t.Name] = record; runs {
			tasks = append(tasks, t.Tasks...)
		}
		last = append(last, record)
	}
	_, err = s.Enqueue(ctx, tasks...)
	return s.now, last, err
}

func (s *twin) Claim(_ context.Context, c store.Claim) ([]store.Task, error) {
	var due []store.Task
	for _, t := range s.tasks {
		if slices.Contains(c.Kinds, t.Kind) && !s.paused[t.Kind] && transition.Due(&t, s.now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(t, u store.Task) int { return transition.Order(&t, &u, c.Priorities) })
	of := map[string]int{}
	due = slices.DeleteFunc(due, func(t store.Task) bool {
		of[t.Kind]++
		most, bounded := c.Most[t.Kind]
		return bounded && of[t.Kind] > most
	})
	due = due[:min(len(due), max(0, c.Limit))]
	for i := range due {
		t := &due[i]
		if f, failed := transition.Claim(t, c, s.now); failed {
			s.failures[t.ID] = append(s.failures[t.ID], f)
		}
		t.Token = max(t.Token, s.tokens[t.ID])
		s.tasks[t.ID] = *t
		s.tickets[t.ID] = c.Ticket
	}
	return due, nil
}

func (s *twin) Claimed(_ context.Context, k store.Ticket) (held []store.Task, _ error) {
	for _, id := range slices.Sorted(maps.Keys(s.tickets)) {
		t, of := s.tasks[id], s.tickets[id]
		if of.Engine == k.Engine && of.Number < k.Number && transition.Holds(&t, t.Lease(), s.now) {
			held = append(held, t)
		}
	}
	return held, nil
}

// find returns a copy of the task, or nil.
func (s *twin) find(id store.ID) *store.Task {
	if t, ok := s.tasks[id]; ok {
		return &t
	}
	return nil
}

func (s *twin) Enter(_ context.Context, l store.Lease, at string, attempt int) (store.Task, error) {
	t := s.find(l.Task)
	if err := transition.Enter(t, l, at, attempt, s.now); err != nil {
		return store.Task{}, err
	}
	s.tasks[t.ID] = *t
	return *t, nil
}

func (s *twin) Finish(ctx context.Context, l store.Lease, p store.Passage, commit store.Commit) error {
	t := s.find(l.Task)
	if again, err := transition.MayFinish(t, l, p, s.now); again || err != nil {
		return err
	}
	if commit != nil {
		if err := commit(ctx, twinTx{t}); err != nil {
			return err
		}
	}
	transition.Finish(t, p, s.now)
	s.tasks[t.ID] = *t
	return nil
}

type twinTx struct{ t *store.Task }

func (tx twinTx) SetData(data []byte) { tx.t.Data = data }

func (s *twin) Return(_ context.Context, l store.Lease, r store.Return) (store.Status, error) {
	t := s.find(l.Task)
	f, failed := transition.Failed(t, r, s.now)
	if err := transition.Return(t, l, r, s.now); err != nil {
		return "", err
	}
	s.tasks[t.ID] = *t
	if failed {
		s.failures[t.ID] = append(s.failures[t.ID], f)
	}
	return t.Status, nil
}

func (s *twin) Heartbeat(_ context.Context, renewals []store.Renewal, length time.Duration) ([]error, error) {
	var answers []error
	for _, r := range renewals {
		answers = append(answers, transition.Beat(s.find(r.Lease.Task), r.Lease, s.now))
	}
	for i, r := range renewals {
		if t := s.find(r.Lease.Task); transition.Renewed(answers[i]) {
			transition.Note(t, r.Progress)
			t.Due = s.now.Add(length)
			s.tasks[t.ID] = *t
		}
	}
	return answers, nil
}

func (s *twin) Suspend(_ context.Context, id store.ID) (bool, error) {
	return s.request(id, transition.Suspend)
}

func (s *twin) Resume(_ context.Context, id store.ID, failed bool) (bool, error) {
	return s.request(id, transition.Resume(failed))
}

func (s *twin) Cancel(_ context.Context, id store.ID) (bool, error) {
	return s.request(id, transition.Cancel)
}

func (s *twin) request(id store.ID, rule transition.Request) (bool, error) {
	t := s.find(id)
	if t == nil {
		return false, store.ErrNotFound
	}
	changed := rule(t, s.now)
	s.tasks[id] = *t
	return changed, nil
}

func (s *twin) SetPaused(_ context.Context, kind string, paused bool) (bool, error) {
	changed := s.paused[kind] != paused
	s.paused[kind] = paused
	return changed, nil
}

func (s *twin) Paused(context.Context) (all []string, _ error) {
	for _, kind := range slices.Sorted(maps.Keys(s.paused)) {
		if s.paused[kind] {
			all = append(all, kind)
		}
	}
	return all, nil
}

func (s *twin) Get(_ context.Context, id store.ID) (store.Task, error) {
	if t := s.find(id); t != nil {
		return *t, nil
	}
	return store.Task{}, store.ErrNotFound
}

func (s *twin) Failures(_ context.Context, id store.ID) ([]store.Failure, error) {
	if s.find(id) == nil {
		return nil, store.ErrNotFound
	}
	all := s.failures[id]
	return all[max(0, len(all)-transition.MaxFailures):], nil
}

func (s *twin) List(_ context.Context, sel store.Selection) (all []store.Task, _ error) {
	ids := slices.Sorted(maps.Keys(s.tasks))
	if sel.Newest {
		slices.Reverse(ids)
	}
	for _, id := range ids {
		if t := s.tasks[id]; transition.Selected(&t, sel) && (sel.Limit <= 0 || len(all) < sel.Limit) {
			all = append(all, t)
		}
	}
	return all, nil
}

func (s *twin) Counts(context.Context) (all []store.Count, _ error) {
	n := map[store.Count]int{}
	for _, t := range s.tasks {
		n[store.Count{Kind: t.Kind, Stage: t.Stage, Status: t.Status}]++
	}
	for c, n := range n {
		c.N = n
		all = append(all, c)
	}
	slices.SortFunc(all, transition.CountOrder)
	return all, nil
}

func (s *twin) Purge(_ context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	var ended []store.Task
	for _, t := range s.tasks {
		if transition.Purged(&t, status, age, s.now) {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, func(t, u store.Task) int { return transition.EndOrder(&t, &u) })
	ended = ended[:min(len(ended), max(0, limit))]
	for _, t := range ended {
		delete(s.tasks, t.ID)
		delete(s.tickets, t.ID)
		maps.DeleteFunc(s.keys, func(_ [2]string, id store.ID) bool { return id == t.ID })
	}
	return len(ended), nil
}
