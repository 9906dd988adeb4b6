package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// tasks is the store.Store of a Store. Each transition locks the database, reads the tasks and the clock, applies a rule of
// package transition, and writes the tasks.
type tasks struct {
	database
	statements
	counted bool // the database counts
}

// Enqueue costs one transaction, whatever the number of tasks.
func (s *tasks) Enqueue(ctx context.Context, tasks ...store.NewTask) (ids []store.ID, err error) {
	err = s.write(ctx, "enqueue", func(tx *sql.Tx) error {
		ids, err = s.insert(tx, tasks)
		return err
	})
	return committed(ids, err)
}

// insert adds tasks. If an existing task has the same key, it returns the number of that task.
func (s *tasks) insert(tx *sql.Tx, tasks []store.NewTask) ([]store.ID, error) {
	distinct, places, err := transition.Distinct(tasks)
	if err != nil {
		return nil, err
	}
	now, insert := s.now(), tx.Stmt(s.enqueue)
	ids := make([]store.ID, len(distinct))
	for i, n := range distinct {
		if n.Key != "" {
			other, err := one(tx.Stmt(s.key).QueryRow(n.Kind, n.Key), func(r row, t *store.Task) error {
				return r.Scan(&t.ID, (*moment)(&t.Created))
			})
			if err != nil {
				return nil, err
			}
			if other != nil && transition.Stands(other.Created, n, now) {
				ids[i] = other.ID
				continue
			}
		}
		t := transition.New(n, now)
		r, err := insert.Exec(t.Kind, t.Stage, t.Status, t.Data, milliseconds(t.Due), milliseconds(t.Created))
		if err != nil {
			return nil, err
		}
		id, err := r.LastInsertId()
		if err != nil {
			return nil, err
		}
		ids[i] = store.ID(id)
		if n.Key != "" {
			if _, err := tx.Stmt(s.keep).Exec(n.Kind, n.Key, id); err != nil {
				return nil, err
			}
		}
	}
	return transition.Spread(ids, places), nil
}

// Claim costs one transaction, whatever the limit.
func (s *tasks) Claim(ctx context.Context, c store.Claim) (claimed []store.Task, err error) {
	err = s.write(ctx, "claim", func(tx *sql.Tx) error {
		now := s.now()
		if claimed, err = s.first(tx, c, now); len(claimed) == 0 || err != nil {
			return err
		}
		claim := tx.Stmt(s.claim)
		for i := range claimed {
			t := &claimed[i]
			was := t.Lease()
			if f, failed := transition.Claim(t, c, now); failed {
				if err := s.noteFailure(tx, was, f); err != nil {
					return err
				}
			}
			t.Due = at(milliseconds(t.Due))
			if _, err := claim.Exec(append(values(t), t.Worker, t.Token)...); err != nil {
				return err
			}
		}
		_, err = tx.Stmt(s.ticket).Exec(numbers(claimed, number), c.Ticket.Engine, c.Ticket.Number)
		return err
	})
	return committed(claimed, err)
}

func (s *tasks) first(tx *sql.Tx, c store.Claim, now time.Time) ([]store.Task, error) {
	var all []store.Task
	for _, same := range ranked(transition.Kinds(c), c.Priorities) {
		for _, fresh := range []bool{false, true} {
			more, err := s.firstOf(tx, fresh, same, c, all, now)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	rows, err := tx.Stmt(s.wholes).Query(numbers(all, number))
	all, err = each(all[:0], rows, err, scanWhole)
	slices.SortFunc(all, order(c.Priorities))
	return all, err
}

// ranked returns the kinds in groups of the same priority, the highest first.
func ranked(kinds []string, priorities map[string]int) (groups [][]string) {
	if len(priorities) == 0 {
		return [][]string{kinds}
	}
	of := map[int][]string{}
	for _, kind := range kinds {
		of[priorities[kind]] = append(of[priorities[kind]], kind)
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(of))) {
		groups = append(groups, of[priority])
	}
	return groups
}

// firstOf returns the numbers, kinds and times of due tasks that are fresh, or that are not, of kinds with the same
// priority, as many as c allows in addition to taken. Each kind is asked for by itself: the index has its tasks in
// order, and SQLite would sort all that are due if it were asked for several kinds.
func (s *tasks) firstOf(
	tx *sql.Tx, fresh bool, kinds []string, c store.Claim, taken []store.Task, now time.Time,
) (all []store.Task, _ error) {
	limit := c.Limit - len(taken)
	if limit <= 0 {
		return nil, nil
	}
	heads, err := s.headsOf(tx, fresh, kinds, now)
	if err != nil {
		return nil, err
	}
	due, first, until := tx.Stmt(s.due), order(nil), now
	for _, head := range heads {
		if len(all) == limit && first(head, all[limit-1]) > 0 {
			break
		}
		most := limit
		if bound, ok := c.Most[head.Kind]; ok {
			for _, t := range taken {
				if t.Kind == head.Kind {
					bound--
				}
			}
			most = max(0, min(limit, bound))
		}
		rows, err := due.Query(fresh, head.Kind, until.UnixMilli(), most)
		if all, err = each(all, rows, err, scanDue); err != nil {
			return nil, err
		}
		slices.SortFunc(all, first)
		if all = all[:min(len(all), limit)]; len(all) == limit {
			until = all[limit-1].Due
		}
	}
	return all, nil
}

// few is how many kinds are asked for tasks whether they have any or not: to ask them takes about as long as to find out.
const few = 16

// headsOf returns of each kind that may have due tasks what comes before all of them in a claim: the first of them, in the
// order of claims, if there are many kinds.
func (s *tasks) headsOf(tx *sql.Tx, fresh bool, kinds []string, now time.Time) (heads []store.Task, err error) {
	if len(kinds) <= few {
		for _, kind := range kinds {
			heads = append(heads, store.Task{Kind: kind})
		}
		return heads, nil
	}
	rows, err := tx.Stmt(s.heads).Query(fresh, now.UnixMilli())
	if heads, err = each(nil, rows, err, scanDue); err != nil {
		return nil, err
	}
	heads = slices.DeleteFunc(heads, func(t store.Task) bool {
		_, ok := slices.BinarySearch(kinds, t.Kind)
		return !ok
	})
	slices.SortFunc(heads, order(nil))
	return heads, nil
}

func number(t store.Task) store.ID { return t.ID }

func order(priorities map[string]int) func(t, u store.Task) int {
	return func(t, u store.Task) int { return transition.Order(&t, &u, priorities) }
}

// Claimed waits for no write, and so does not see a claim that has not been committed yet.
func (s *tasks) Claimed(ctx context.Context, t store.Ticket) ([]store.Task, error) {
	return read(ctx, s, "claimed", scanWhole, claimed, t.Engine, t.Number, s.now().UnixMilli())
}

// Enter costs one transaction, and waits for other writes.
func (s *tasks) Enter(ctx context.Context, l store.Lease, at string, attempt int) (entered store.Task, err error) {
	err = s.write(ctx, "enter", func(tx *sql.Tx) error {
		t, err := one(tx.Stmt(s.whole).QueryRow(l.Task), scanWhole)
		if err != nil {
			return err
		}
		if err := transition.Enter(t, l, at, attempt, s.now()); err != nil {
			return err
		}
		entered = *t
		_, err = tx.Stmt(s.enter).Exec(t.ID, t.Stage, t.Attempt, t.Changed.UnixMilli())
		return err
	})
	return committed(entered, err)
}

// change applies a rule to a task, which is nil if there is none, and writes the task unless the rule answers with an error.
// The rule may write to other tables.
func (s *tasks) change(ctx context.Context, what string, id store.ID, rule func(*sql.Tx, *store.Task, time.Time) error) error {
	return s.write(ctx, what, func(tx *sql.Tx) error {
		t, err := one(tx.Stmt(s.brief).QueryRow(id), scanBrief)
		if err != nil {
			return err
		}
		if err := rule(tx, t, s.now()); err != nil {
			return err
		}
		_, err = tx.Stmt(s.save).Exec(values(t)...)
		return err
	})
}

// Finish gives commit the transaction: see Tx. All other writes to the database wait while commit runs, heartbeats
// too, so commit must not call methods of the Store that write. Reads go on.
//
// An error of commit that has one of SQLite's in it, of the kind that passes (a full disk, I/O, locks, no memory, files that
// cannot be opened or written), is store.ErrUnavailable as well, unless it is Permanent.
func (s *tasks) Finish(ctx context.Context, l store.Lease, p store.Passage, commit store.Commit) error {
	var refused error
	err := s.write(ctx, "finish", func(tx *sql.Tx) error {
		t, err := one(tx.Stmt(s.brief).QueryRow(l.Task), scanBrief)
		if err != nil {
			return err
		}
		if again, err := transition.MayFinish(t, l, p, s.now()); again || err != nil {
			return err
		}
		written := &transaction{Tx: tx}
		return s.vetoing(func() error {
			if commit != nil {
				if refused = commit(ctx, written); refused != nil {
					return refused
				}
			}
			noted := t.ProgressStage != ""
			transition.Finish(t, p, s.now())
			r, err := tx.Stmt(s.finish).Exec(t.ID, t.Token, t.Stage, string(t.Status), ending(t), t.Changed.UnixMilli(),
				written.set, written.data)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil {
				return err
			} else if n != 1 {
				return errEnded
			}
			if noted {
				_, err = tx.Stmt(s.forget).Exec(t.ID)
			}
			return err
		})
	})
	if refused == nil {
		return err
	}
	if !errors.Is(refused, store.ErrPermanent) && is(refused, lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_BUSY, lib.SQLITE_LOCKED,
		lib.SQLITE_NOMEM, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PROTOCOL) {
		return s.failed("finish", fmt.Errorf("%w: %w", store.ErrUnavailable, refused)) // it may be over some time later
	}
	return refused
}

// Return costs one transaction, and waits for other writes.
func (s *tasks) Return(ctx context.Context, l store.Lease, r store.Return) (status store.Status, err error) {
	err = s.change(ctx, "return", l.Task, func(tx *sql.Tx, t *store.Task, now time.Time) error {
		noted := transition.Notes(t, r.Progress)
		f, failed := transition.Failed(t, r, now)
		if err := transition.Return(t, l, r, now); err != nil {
			return err
		}
		status = t.Status
		if noted {
			if err := s.noteProgress(tx, t.ID, r.Progress); err != nil {
				return err
			}
		}
		if failed {
			return s.noteFailure(tx, l, f)
		}
		return nil
	})
	return committed(status, err)
}

// noteFailure writes the record of the failure under a lease, in place of the oldest one if there are too many.
func (s *tasks) noteFailure(tx *sql.Tx, l store.Lease, f store.Failure) error {
	_, err := tx.Stmt(s.fail).Exec(l.Task, l.Token, f.Stage, f.Attempt, f.Time.UnixMilli(), f.Text)
	if err == nil {
		_, err = tx.Stmt(s.trim).Exec(l.Task, transition.MaxFailures)
	}
	return err
}

func (s *tasks) noteProgress(tx *sql.Tx, id store.ID, p store.Progress) error {
	_, err := tx.Stmt(s.note).Exec(id, p.Stage, p.Data)
	return err
}

// Heartbeat costs one transaction, whatever the number of leases, and a statement for each that comes with progress.
func (s *tasks) Heartbeat(ctx context.Context, renewals []store.Renewal, length time.Duration) ([]error, error) {
	if len(renewals) == 0 {
		return nil, ctx.Err()
	}
	answers := make([]error, len(renewals))
	of := func(r store.Renewal) store.ID { return r.Lease.Task }
	err := s.write(ctx, "heartbeat", func(tx *sql.Tx) error {
		rows, err := tx.Stmt(s.briefs).Query(numbers(renewals, of))
		held, err := each(nil, rows, err, scanBrief)
		if err != nil {
			return err
		}
		now := s.now()
		byID := make(map[store.ID]*store.Task, len(held))
		for i := range held {
			byID[held[i].ID] = &held[i]
		}
		var renewed []store.Renewal
		for i, r := range renewals {
			t := byID[r.Lease.Task]
			if answers[i] = transition.Beat(t, r.Lease, now); !transition.Renewed(answers[i]) {
				continue
			}
			renewed = append(renewed, r)
			if transition.Notes(t, r.Progress) {
				if err := s.noteProgress(tx, t.ID, r.Progress); err != nil {
					return err
				}
			}
		}
		_, err = tx.Stmt(s.renew).Exec(numbers(renewed, of), milliseconds(now.Add(length)))
		return err
	})
	return committed(answers, err)
}
