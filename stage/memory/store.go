package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

type tasks struct {
	now    func() time.Time
	lock   chan struct{} // full while it is held: a mutex for which a caller waits no longer than its context lasts
	tasks  []*entry      // in order of their numbers
	last   store.ID      // the latest number
	due    map[class]*agenda
	keys   map[key]store.ID     // of the latest tasks with keys
	ticks  map[string]time.Time // the latest ones of periodic tasks, by name
	paused map[string]bool      // kinds
	counts map[counted]*count
}

type key struct{ kind, key string }

// New returns an empty store. now is its clock; nil means time.Now. The clock is read under the store's lock, by the
// goroutine that calls a method, and must not return the zero Time, which means never.
func New(now func() time.Time) store.Store {
	if now == nil {
		now = time.Now
	}
	return &tasks{
		now: now, lock: make(chan struct{}, 1), due: map[class]*agenda{}, keys: map[key]store.ID{}, ticks: map[string]time.Time{},
		paused: map[string]bool{}, counts: map[counted]*count{},
	}
}

// locked calls do under the lock, unless ctx has ended or ends before.
func locked[T any](ctx context.Context, s *tasks, do func() (T, error)) (none T, _ error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case s.lock <- struct{}{}: // nearly always, and cheaper than with two cases
	default:
		select {
		case s.lock <- struct{}{}:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	defer func() { <-s.lock }()
	return do()
}

func (s *tasks) Enqueue(ctx context.Context, tasks ...store.NewTask) ([]store.ID, error) {
	distinct, places, err := transition.Distinct(tasks)
	if err != nil {
		return nil, err
	}
	return locked(ctx, s, func() ([]store.ID, error) {
		now := s.now()
		ids := make([]store.ID, len(distinct))
		for i, n := range distinct {
			ids[i] = s.enqueue(n, now)
		}
		return transition.Spread(ids, places), nil
	})
}

// enqueue adds a task, unless another one stands for it, and returns the number of either.
func (s *tasks) enqueue(n store.NewTask, now time.Time) store.ID {
	k := key{n.Kind, n.Key}
	if n.Key != "" {
		if id, ok := s.keys[k]; ok && transition.Stands(s.find(id).task.Created, n, now) {
			return id
		}
	}
	e := &entry{}
	s.tasks = append(s.tasks, e)
	t := transition.New(n, now)
	s.last++
	t.ID, t.Data = s.last, copied(n.Data)
	s.put(e, t)
	if n.Key != "" {
		s.keys[k] = t.ID
		e.key = n.Key
	}
	return t.ID
}

func (s *tasks) Tick(ctx context.Context, ticks ...store.Tick) (now time.Time, last []time.Time, err error) {
	last, err = locked(ctx, s, func() ([]time.Time, error) {
		now = s.now().Round(0)
		last, tasks := make([]time.Time, len(ticks)), []store.NewTask(nil)
		for i, t := range ticks {
			var runs bool
			if last[i], runs = transition.Tick(s.ticks[t.Name], t, now); runs {
				tasks = append(tasks, t.Tasks...)
			}
		}
		distinct, _, err := transition.Distinct(tasks)
		if err != nil {
			return nil, err
		}
		for i, t := range ticks {
			s.ticks[t.Name] = last[i]
		}
		for _, n := range distinct {
			s.enqueue(n, now)
		}
		return last, nil
	})
	return now, last, err
}

func (s *tasks) Claim(ctx context.Context, c store.Claim) ([]store.Task, error) {
	return locked(ctx, s, func() ([]store.Task, error) {
		now := s.now()
		taken := s.takeDue(c, now)
		claimed := make([]store.Task, len(taken))
		for i, e := range taken {
			t := e.task
			if f, failed := transition.Claim(&t, c, now); failed {
				f.Time = now.Round(0).UTC()
				e.record(f)
			}
			e.ticket = c.Ticket
			s.put(e, t)
			claimed[i] = snapshot(&e.task)
		}
		return claimed, nil
	})
}

// Claimed reads all tasks: it is called after a claim without an answer, which a store in memory never gives.
func (s *tasks) Claimed(ctx context.Context, t store.Ticket) ([]store.Task, error) {
	return locked(ctx, s, func() ([]store.Task, error) {
		now := s.now()
		var claimed []store.Task
		for _, e := range s.tasks {
			if e.ticket.Engine == t.Engine && e.ticket.Number < t.Number && transition.Holds(&e.task, e.task.Lease(), now) {
				claimed = append(claimed, snapshot(&e.task))
			}
		}
		return claimed, nil
	})
}

func (s *tasks) Enter(ctx context.Context, l store.Lease, at string, attempt int) (t store.Task, err error) {
	err = s.held(ctx, l, func(held *store.Task, now time.Time) error {
		err := transition.Enter(held, l, at, attempt, now)
		if err == nil {
			t = snapshot(held)
		}
		return err
	})
	return t, err
}

// Finish calls commit under the lock: it must not call the store, and all other calls wait for it.
func (s *tasks) Finish(ctx context.Context, l store.Lease, p store.Passage, commit store.Commit) error {
	return s.held(ctx, l, func(t *store.Task, now time.Time) error {
		if again, err := transition.MayFinish(t, l, p, now); again || err != nil {
			return err
		}
		if commit != nil {
			tx := tx{t.Data}
			if err := commit(ctx, &tx); err != nil {
				return err
			}
			t.Data = tx.data
		}
		transition.Finish(t, p, now)
		return nil
	})
}

// tx keeps what is to be written until commit has returned.
type tx struct{ data []byte }

func (t *tx) SetData(data []byte) { t.data = copied(data) }

func (s *tasks) Return(ctx context.Context, l store.Lease, r store.Return) (status store.Status, err error) {
	err = s.held(ctx, l, func(t *store.Task, now time.Time) error {
		r.Progress.Data = copied(r.Progress.Data)
		f, failed := transition.Failed(t, r, now.Round(0).UTC())
		if err := transition.Return(t, l, r, now); err != nil {
			return err
		}
		status = t.Status
		if failed {
			s.find(l.Task).record(f)
		}
		return nil
	})
	return status, err
}

// held applies a rule to the task of a lease.
func (s *tasks) held(ctx context.Context, l store.Lease, rule func(t *store.Task, now time.Time) error) error {
	_, err := locked(ctx, s, func() (struct{}, error) {
		e := s.find(l.Task)
		if e == nil {
			return struct{}{}, rule(nil, s.now())
		}
		err := rule(&e.task, s.now()) // which changes nothing if it refuses
		if err == nil {
			s.put(e, e.task)
		}
		return struct{}{}, err
	})
	return err
}

func (s *tasks) Heartbeat(ctx context.Context, renewals []store.Renewal, length time.Duration) ([]error, error) {
	return locked(ctx, s, func() ([]error, error) {
		now := s.now()
		answers := make([]error, len(renewals))
		for i, r := range renewals {
			var t *store.Task
			if e := s.find(r.Lease.Task); e != nil {
				t = &e.task
			}
			answers[i] = transition.Beat(t, r.Lease, now)
		}
		for i, r := range renewals {
			if e := s.find(r.Lease.Task); transition.Renewed(answers[i]) {
				t := e.task
				r.Progress.Data = copied(r.Progress.Data)
				transition.Note(&t, r.Progress)
				t.Due = now.Add(length)
				s.put(e, t)
			}
		}
		return answers, nil
	})
}

func (s *tasks) Suspend(ctx context.Context, id store.ID) (bool, error) {
	return s.request(ctx, id, transition.Suspend)
}

func (s *tasks) Resume(ctx context.Context, id store.ID, failed bool) (bool, error) {
	return s.request(ctx, id, transition.Resume(failed))
}

func (s *tasks) Cancel(ctx context.Context, id store.ID) (bool, error) {
	return s.request(ctx, id, transition.Cancel)
}

func (s *tasks) request(ctx context.Context, id store.ID, rule transition.Request) (bool, error) {
	return locked(ctx, s, func() (bool, error) {
		e := s.find(id)
		if e == nil {
			return false, transition.NotFound(id)
		}
		if !rule(&e.task, s.now()) {
			return false, nil
		}
		s.put(e, e.task)
		return true, nil
	})
}

func (s *tasks) SetPaused(ctx context.Context, kind string, paused bool) (bool, error) {
	return locked(ctx, s, func() (bool, error) {
		if s.paused[kind] == paused {
			return false, nil
		}
		if paused {
			s.paused[kind] = true
		} else {
			delete(s.paused, kind)
		}
		return true, nil
	})
}

func (s *tasks) Paused(ctx context.Context) ([]string, error) {
	return locked(ctx, s, func() ([]string, error) {
		return slices.Sorted(maps.Keys(s.paused)), nil
	})
}

func (s *tasks) Get(ctx context.Context, id store.ID) (store.Task, error) {
	return locked(ctx, s, func() (store.Task, error) {
		e := s.find(id)
		if e == nil {
			return store.Task{}, transition.NotFound(id)
		}
		return snapshot(&e.task), nil
	})
}

func (s *tasks) Failures(ctx context.Context, id store.ID) ([]store.Failure, error) {
	return locked(ctx, s, func() ([]store.Failure, error) {
		e := s.find(id)
		if e == nil {
			return nil, transition.NotFound(id)
		}
		return slices.Clone(e.failures), nil
	})
}

func (s *tasks) List(ctx context.Context, sel store.Selection) ([]store.Task, error) {
	return locked(ctx, s, func() ([]store.Task, error) {
		few, order := s.tasks, slices.All[[]*entry]
		if sel.IDs != nil {
			few = nil
			for _, id := range slices.Compact(slices.Sorted(slices.Values(sel.IDs))) {
				if e := s.find(id); e != nil {
					few = append(few, e)
				}
			}
			sel.IDs = nil // not to be searched again
		}
		if sel.Newest {
			order = slices.Backward[[]*entry]
		}
		var found []store.Task
		for _, e := range order(few) {
			if sel.Limit > 0 && len(found) == sel.Limit {
				break
			}
			if transition.Selected(&e.task, sel) {
				found = append(found, snapshot(&e.task))
			}
		}
		return found, nil
	})
}

// find returns the entry of a task, or nil. It finds it at once unless tasks were deleted.
func (s *tasks) find(id store.ID) *entry {
	n := int(max(0, min(id, store.ID(len(s.tasks))))) // the number of tasks before it is less
	if n > 0 && s.tasks[n-1].task.ID == id {
		return s.tasks[n-1]
	}
	i, there := slices.BinarySearchFunc(s.tasks[:n], id, func(e *entry, id store.ID) int { return cmp.Compare(e.task.ID, id) })
	if !there {
		return nil
	}
	return s.tasks[i]
}

// entry is a task and its place.
type entry struct {
	task   store.Task
	ticket store.Ticket // of the latest claim
	key    string       // NewTask.Key
	count  *count       // where it is counted
	in     *agenda      // nil exactly when task.Due is zero
	place  int          // in it

	failures []store.Failure // the latest ones
}

// record adds to the failures, in place of the oldest if there are too many.
func (e *entry) record(f store.Failure) {
	e.failures = append(slices.Clone(e.failures[max(0, len(e.failures)+1-transition.MaxFailures):]), f)
}

func snapshot(of *store.Task) store.Task {
	t := *of
	t.Data, t.Progress = copied(t.Data), copied(t.Progress)
	return t
}

// copied keeps the bytes of the caller and of the store apart. No bytes are nil.
func copied(data []byte) []byte { return append([]byte(nil), data...) }

type counted struct {
	kind, stage string
	status      store.Status
}

type count struct {
	counted
	n int
}

// count moves e to the count of its task.
func (s *tasks) count(e *entry) {
	of := counted{e.task.Kind, e.task.Stage, e.task.Status}
	if e.count != nil {
		if e.count.counted == of {
			return
		}
		e.count.n--
	}
	c := s.counts[of]
	if c == nil {
		c = &count{counted: of}
		s.counts[of] = c
	}
	c.n++
	e.count = c
}

func (s *tasks) Counts(ctx context.Context) ([]store.Count, error) {
	return locked(ctx, s, func() ([]store.Count, error) {
		var all []store.Count
		for of, c := range s.counts {
			if c.n > 0 {
				all = append(all, store.Count{Kind: of.kind, Stage: of.stage, Status: of.status, N: c.n})
			}
		}
		slices.SortFunc(all, transition.CountOrder)
		return all, nil
	})
}

func (s *tasks) Purge(ctx context.Context, status store.Status, age time.Duration, limit int) (int, error) {
	return locked(ctx, s, func() (int, error) {
		now := s.now()
		var ended []*entry
		for _, e := range s.tasks {
			if transition.Purged(&e.task, status, age, now) {
				ended = append(ended, e)
			}
		}
		slices.SortFunc(ended, func(e, f *entry) int { return transition.EndOrder(&e.task, &f.task) })
		ended = ended[:min(len(ended), max(0, limit))]
		for _, e := range ended {
			if k := (key{e.task.Kind, e.key}); s.keys[k] == e.task.ID {
				delete(s.keys, k)
			}
			e.count.n--
			e.count = nil
		}
		s.tasks = slices.DeleteFunc(s.tasks, func(e *entry) bool { return e.count == nil })
		return len(ended), nil
	})
}
