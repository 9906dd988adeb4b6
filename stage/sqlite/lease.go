package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/daimon-go/daimon/stage"
)

// Claim gives out tasks that are due; see stage.Store. It costs one transaction, whatever the limit, and rounds the
// length of the lease up to milliseconds.
func (s *Store) Claim(ctx context.Context, c stage.Claim) (claimed []stage.Task, err error) {
	err = s.write(ctx, "claim", func(tx *sql.Tx) error {
		var now int64
		if err := tx.Stmt(s.clock).QueryRow().Scan(&now); err != nil {
			return err
		}
		ids, err := s.dueNow(tx, c, now)
		if err != nil {
			return err
		}
		claimed = make([]stage.Task, len(ids))
		for i, id := range ids {
			if claimed[i], err = s.claimOne(tx, c, id, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// dueNow returns which tasks to claim, in order. Each kind is asked for by itself: the index has them in order, and
// SQLite would sort all that are due if it were asked for several kinds.
func (s *Store) dueNow(tx *sql.Tx, c stage.Claim, now int64) ([]stage.ID, error) {
	type candidate struct {
		id  stage.ID
		due int64
	}
	var all []candidate
	kinds := slices.Clone(c.Kinds)
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		rows, err := tx.Stmt(s.due).Query(kind, now, max(c.Limit, 0))
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var one candidate
			if err := rows.Scan(&one.id, &one.due); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			all = append(all, one)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
	var ids []stage.ID
	for _, one := range all[:min(len(all), max(c.Limit, 0))] {
		ids = append(ids, one.id)
	}
	return ids, nil
}

// claimOne gives out one task and returns it as it is then.
func (s *Store) claimOne(tx *sql.Tx, c stage.Claim, id stage.ID, now int64) (stage.Task, error) {
	t, err := scan(tx.Stmt(s.task).QueryRow(id))
	if err != nil {
		return t, err
	}
	before := t
	before.Data = slices.Clone(t.Data)
	end := now + milliseconds(c.Length)
	t.Stage, t.Attempt = c.Enter(&before)
	t.Status = stage.InProcessing
	t.Worker = c.Worker
	t.Token++
	t.Due = at(end)
	t.Changed = at(now)
	_, err = tx.Stmt(s.claim).Exec(t.ID, t.Stage, t.Attempt, t.Worker, t.Token, end, now)
	return t, err
}

// Enter shows a task at a stage; see stage.Store.
func (s *Store) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (t stage.Task, err error) {
	err = s.write(ctx, "enter", func(tx *sql.Tx) error {
		t, err = scan(tx.Stmt(s.enter).QueryRow(l.Task, l.Token, at, attempt))
		if errors.Is(err, sql.ErrNoRows) {
			return s.refusal(tx, l)
		}
		return err
	})
	if err != nil {
		return stage.Task{}, err
	}
	return t, nil
}

// refusal is why the holder of l cannot go on.
func (s *Store) refusal(tx *sql.Tx, l stage.Lease) error {
	var wanted stage.Wanted
	err := tx.Stmt(s.held).QueryRow(l.Task, l.Token).Scan(&wanted)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return cmp.Or(wish(wanted), stage.ErrLeaseLost)
}

// wish is what somebody wants, as an error.
func wish(w stage.Wanted) error {
	switch w {
	case stage.Suspension:
		return stage.ErrSuspended
	case stage.Ending:
		return stage.ErrCancelled
	}
	return nil
}

// Finish ends a dynamic stage; see stage.Store. SQL gives commit the transaction. All other writes to the database wait
// while commit runs, heartbeats too, so commit must not call methods of the Store that write; a lease that ends
// meanwhile is still good for this. Reads go on.
//
// An error of commit that has one of SQLite's in it, of the kind that passes (a full disk, I/O, locks, no memory), is
// stage.ErrUnavailable as well, unless it is Permanent.
func (s *Store) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	var refused error
	err := s.write(ctx, "finish", func(tx *sql.Tx) error {
		if done, err := s.passed(tx, l, p); done || err != nil {
			return err
		}
		t := &transaction{Tx: tx}
		return s.vetoing(func() error {
			if commit != nil {
				if refused = commit(t); refused != nil {
					return refused
				}
			}
			r, err := tx.Stmt(s.finish).Exec(l.Task, l.Token, p.From, p.To, p.Last, t.set, t.data)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); n == 1 || err != nil {
				return err
			}
			return errEnded // and begun anew, and meanwhile the task has moved
		})
	})
	switch {
	case refused == nil:
		return err
	case passing(refused):
		return s.failed("finish", fmt.Errorf("%w: %w", stage.ErrUnavailable, refused))
	}
	return refused
}

// passing tells whether what a Commit has run into is SQLite's own trouble, which may be over some time later.
func passing(err error) bool {
	return !stage.IsPermanent(err) && slices.ContainsFunc([]int{
		lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_NOMEM,
	}, func(code int) bool { return is(err, code) })
}

// passed tells whether the holder of l has made this passage before, and else whether it may.
func (s *Store) passed(tx *sql.Tx, l stage.Lease, p stage.Passage) (bool, error) {
	var at string
	var status stage.Status
	var wanted stage.Wanted
	var never, future bool
	err := tx.Stmt(s.passage).QueryRow(l.Task, l.Token).Scan(&at, &status, &wanted, &never, &future)
	live := status == stage.InProcessing && future
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, stage.ErrLeaseLost
	case err != nil:
		return false, err
	case p.Last && at == p.To && status == stage.Normal && never:
		return true, nil
	case !live:
		return false, stage.ErrLeaseLost
	case !p.Last && at == p.To:
		return true, nil
	case wanted != stage.Nothing:
		return false, wish(wanted)
	case at != p.From:
		return false, stage.ErrLeaseLost // somebody else has moved it, or this call has come late
	}
	return false, nil
}

// Return gives a task back; see stage.Store.
func (s *Store) Return(ctx context.Context, l stage.Lease, r stage.Return) (status stage.Status, err error) {
	err = s.write(ctx, "return", func(tx *sql.Tx) error {
		err := tx.Stmt(s.back).QueryRow(l.Task, l.Token, r.Stage, r.Status, r.Attempt, stage.Legible(r.Failure), r.Runs,
			milliseconds(r.After)).Scan(&status)
		if errors.Is(err, sql.ErrNoRows) {
			return stage.ErrLeaseLost
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return status, nil
}

// Heartbeat renews leases; see stage.Store. It costs one transaction, and rounds the length up to milliseconds.
func (s *Store) Heartbeat(ctx context.Context, leases []stage.Lease, length time.Duration) ([]stage.Beat, error) {
	answers := make(map[stage.Lease]stage.Beat, len(leases)) // of each lease, however often it is there
	err := s.write(ctx, "heartbeat", func(tx *sql.Tx) error {
		var now int64
		if err := tx.Stmt(s.clock).QueryRow().Scan(&now); err != nil {
			return err
		}
		beat := tx.Stmt(s.beat)
		for _, l := range leases {
			if _, done := answers[l]; done {
				continue
			}
			var wanted stage.Wanted
			err := beat.QueryRow(l.Task, l.Token, now, milliseconds(length)).Scan(&wanted)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			answers[l] = stage.Beat{Lost: err != nil, Wanted: wanted}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	beats := make([]stage.Beat, len(leases))
	for i, l := range leases {
		beats[i] = answers[l]
	}
	return beats, nil
}
