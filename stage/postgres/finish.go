package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Finish without a commit is a part of a statement that finishes all stages of the moment: see flush. With a commit it is a
// transaction: one message begins it, locks the task and writes the end of the stage; commit follows, with what it writes;
// and one message commits. Only this task is locked meanwhile: heartbeats leave it out, and a request waits. commit must
// not call the Store, whose connections may all wait for it.
//
// The server ends the transaction if it waits for the next statement for three quarters of the lease, or for 10 s if
// that is less: otherwise a worker that vanishes would keep the task locked. The network may be the cause, so this does
// not count as an attempt: commit is called again. If it is always so slow, the lease ends.
//
// An error of commit that has one of PostgreSQL's in it, of the kind that passes (a deadlock, a serialization failure, a
// server that shuts down, has waited too long or lets nothing be written, a lost connection), is store.ErrUnavailable as well,
// unless it is Permanent. A statement that was cancelled, perhaps since it took too long, is an attempt. If a statement of
// commit has failed and commit has gone on, nothing has changed, and the error of that statement counts.
func (s *tasks) Finish(ctx context.Context, l store.Lease, p store.Passage, commit store.Commit) error {
	if commit == nil {
		if done, err := s.flushed(ctx, l, p); done || err != nil {
			return s.failed(ctx, "finish", err)
		}
	}
	var refused error
	var finished bool
	finish := func(b *pgx.Batch) {
		b.Queue(s.sql.finish, arguments(&passage{l: l, p: p})...).Exec(func(tag pgconn.CommandTag) error {
			finished = tag.RowsAffected() == 1
			return nil
		})
	}
	err := s.locked(ctx, l.Task, l, finish,
		func(tx pgx.Tx, t *store.Task, now time.Time) error {
			again, err := transition.MayFinish(t, l, p, now)
			if !again && err == nil && !finished {
				err = store.ErrLeaseLost // it has ended between the two statements
			}
			if again || err != nil {
				refused = err
				return err
			}
			if commit == nil {
				return nil
			}
			refused, err = s.write(ctx, l, tx, commit)
			return errors.Join(refused, err)
		})
	if refused != nil {
		return refused
	}
	return s.failed(ctx, "finish", broken(err))
}

// write calls commit, and writes the data that it leaves.
func (s *tasks) write(ctx context.Context, l store.Lease, tx pgx.Tx, commit store.Commit) (refused, err error) {
	conn := tx.Conn().PgConn()
	written := &transaction{Tx: tx}
	delete(conn.CustomData(), lastError)
	if refused := commit(ctx, written); refused != nil {
		// A context that has ended closes the connection, too: one of the Commit's own would end again.
		ended := errors.Is(refused, context.Canceled) || errors.Is(refused, context.DeadlineExceeded)
		if !errors.Is(refused, store.ErrPermanent) && (repeated(refused) == later || conn.IsClosed() && !ended) {
			refused = s.failed(ctx, "finish", fmt.Errorf("%w: %w", store.ErrUnavailable, refused))
		}
		return refused, nil
	}
	switch {
	case conn.IsClosed():
		return nil, errors.New("the connection was lost during the Commit")
	case conn.IsBusy():
		return nil, transition.Permanent(errors.New("the Commit has left rows of a query open"))
	case written.ended || conn.TxStatus() == 'I':
		return nil, errEnded
	case conn.TxStatus() == 'E':
		err, _ := conn.CustomData()[lastError].(error)
		return nil, fmt.Errorf("a statement of the Commit has failed, and the Commit went on: %w", err)
	case written.set:
		_, err := tx.Exec(ctx, s.sql.data, l.Task, written.data)
		return nil, err
	}
	return nil, nil
}

// broken makes errors of a transaction Permanent that come again when it is repeated.
func broken(err error) error {
	var e *pgconn.PgError
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == "22012": // of commitQuery
		return errEnded
	case repeated(err) != never:
		return err
	}
	return transition.Permanent(err) // such as a deferred constraint, checked by COMMIT
}

var errEnded = transition.Permanent(errors.New("the Commit has ended the transaction that it was to write in"))

// commitQuery commits a transaction if it is still the one with that mark, which has no quotes. Otherwise a division by zero
// keeps COMMIT from being executed.
func commitQuery(mark string) string {
	return "SELECT 1 / (current_setting('daimon.lease', true) = '" + mark + "')::int; COMMIT"
}

const lastError = "daimon"

// noteErrors makes connections keep their last error, except the error that only says that there was one before, and
// closes connections that are no longer good.
func noteErrors(cfg *pgx.ConnConfig) {
	before := cfg.OnPgError
	cfg.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.Code != "25P02" {
			conn.CustomData()[lastError] = err
		}
		return before(conn, err) && err.Code != "25006" // nothing can be written there: the next connection may find another host
	}
}

// transaction is the Tx of a Commit, and the pgx.Tx in it, which the Commit must not end.
type transaction struct {
	pgx.Tx
	data  []byte
	set   bool
	ended bool
}

func (t *transaction) SetData(data []byte) { t.data, t.set = append([]byte(nil), data...), true }

// Commit makes Finish fail.
func (t *transaction) Commit(context.Context) error {
	t.ended = true
	return errEnded
}

// Rollback makes Finish fail.
func (t *transaction) Rollback(ctx context.Context) error { return t.Commit(ctx) }

// Tx returns the transaction in which a stage ends: the rows that a Commit writes in it are there exactly when the static
// stage is. It is good until the Commit returns, and must not be ended; transactions in it, of its Begin, may. Tx panics for
// the Tx of another store.
//
//	return func(ctx context.Context, tx store.Tx) error {
//		_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO report (task, body) VALUES ($1, $2)`, t.ID, body)
//		return err
//	}, nil
func Tx(tx store.Tx) pgx.Tx {
	t, ok := tx.(*transaction)
	if !ok {
		panic(fmt.Sprintf("postgres: Tx is for transactions of this package's Store, and this is a %T", tx))
	}
	return t
}

// finishes are the passages that wait for the next flush.
type finishes struct {
	mu       sync.Mutex
	waiting  []*passage
	flushing bool
	flushes  sync.WaitGroup
	life     context.Context // until Close
	end      context.CancelFunc
}

// passage is a Finish without a commit.
type passage struct {
	l      store.Lease
	p      store.Passage
	done   bool
	err    error
	answer chan struct{} // closed when done and err are set
}

// mostFlushed is how many passages one statement finishes.
const mostFlushed = 1000

// flushed has the next flush finish the stage. If done is false without an error, there is more to be said about it, or
// another call has locked the task.
func (s *tasks) flushed(ctx context.Context, l store.Lease, p store.Passage) (done bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	one := &passage{l: l, p: p, answer: make(chan struct{})}
	s.mu.Lock()
	if s.life.Err() != nil {
		s.mu.Unlock()
		return false, errClosed
	}
	s.waiting = append(s.waiting, one)
	if !s.flushing {
		s.flushing = true
		s.flushes.Go(s.flush)
	}
	s.mu.Unlock()
	select {
	case <-one.answer:
		return one.done, one.err
	case <-ctx.Done():
		return false, ctx.Err() // a flush may finish it yet, as if its answer were lost
	}
}

// flush finishes stages until none waits. While one statement is under way, the passages for the next one collect.
func (s *tasks) flush() {
	for {
		s.mu.Lock()
		n := min(len(s.waiting), mostFlushed)
		now := s.waiting[:n:n]
		s.waiting = s.waiting[n:]
		s.flushing = n > 0
		s.mu.Unlock()
		if n == 0 {
			return
		}
		s.finishAll(now)
	}
}

func (s *tasks) finishAll(all []*passage) {
	ctx, cancel := context.WithTimeout(s.life, 10*time.Second)
	defer cancel()
	type end struct {
		store.Lease
		At string
	}
	ends, err := collect(ctx, s.pool, pgx.RowToStructByPos[end], s.sql.finish, arguments(all...)...)
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && repeated(err) != later {
		err = nil // one that the server refuses, such as a stage with a NUL, must not keep the others: each goes by itself
	}
	finished := make(map[end]bool, len(ends))
	for _, e := range ends {
		finished[e] = true
	}
	for _, one := range all {
		one.done, one.err = finished[end{one.l, one.p.To}], err
		close(one.answer)
	}
}

func arguments(all ...*passage) []any {
	n := len(all)
	ids, tokens, from, to, last := make([]int64, n), make([]int64, n), make([]string, n), make([]string, n), make([]bool, n)
	for i, one := range all {
		ids[i], tokens[i], from[i], to[i], last[i] = int64(one.l.Task), one.l.Token, one.p.From, one.p.To, one.p.Last
	}
	return []any{ids, tokens, from, to, last}
}
