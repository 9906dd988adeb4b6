package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// connect opens a pool of at most n connections, each with these parameters and the common ones.
func (s *database) connect(file string, parameters url.Values, n int) (*sql.DB, error) {
	parameters.Set("_foreign_keys", "1")
	parameters.Set("_dqs", "0") // "text" is a column and never a text
	parameters.Set("_error_rc", "1")
	c, err := sqlite.NewConnector(file + "?" + parameters.Encode())
	if err != nil {
		return nil, s.failed("open", err)
	}
	db := sql.OpenDB(&connector{c, s})
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// connector gives connections that the store can veto.
type connector struct {
	driver.Connector
	store *database
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err == nil {
		conn.(sqlite.HookRegisterer).RegisterCommitHook(func() int32 {
			if c.store.vetoed.Load() {
				return 1 // makes a rollback of it
			}
			return 0
		})
	}
	return conn, err
}

// write calls do in a transaction that keeps all other writers out, and commits it if do returns nil. If do panics or calls
// Goexit, the transaction is rolled back.
//
// ctx ends only the wait, first for other writes of this process and then for writes of other processes; both together
// take no longer than Config.Busy. A transaction that has begun is short, and is not interrupted.
func (s *database) write(ctx context.Context, what string, do func(tx *sql.Tx) error) error {
	begun := time.Now()
	if err := s.takeTurn(ctx); err != nil {
		return s.failed(what, err)
	}
	defer func() { <-s.turn }()
	var tx *sql.Tx
	if err := s.patiently(ctx, begun, func() (err error) {
		tx, err = s.writer.BeginTx(context.Background(), nil)
		return err
	}); err != nil {
		return s.failed(what, err)
	}
	defer func() { _ = tx.Rollback() }() // after a Commit it does nothing
	if err := do(tx); err != nil {
		return s.failed(what, err)
	}
	return s.failed(what, tx.Commit())
}

// committed returns the result of a transaction, or the zero value if it has failed.
func committed[T any](v T, err error) (none T, _ error) {
	if err != nil {
		return none, err
	}
	return v, nil
}

// takeTurn waits for the other writes of this process, in the order of the calls. The pool has no order, and would let a
// call wait for Config.Busy once for each call before it.
func (s *database) takeTurn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(s.busy)
	defer late.Stop()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-late.C:
		return fmt.Errorf("for %v another process has been writing, or others in this one", s.busy)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// patiently repeats do while another process locks the database, until Config.Busy is over or ctx has ended. SQLite's own
// busy handler would sleep up to 100 ms at a time: too long beside a process that writes all the time.
func (s *database) patiently(ctx context.Context, begun time.Time, do func() error) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 8*time.Millisecond) {
		err := do()
		switch {
		case !is(err, lib.SQLITE_BUSY):
			return err
		case time.Since(begun) >= s.busy:
			return fmt.Errorf("for %v another process has been writing: %w", s.busy, err)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// is reports whether err is one of SQLite with one of these codes; of extended codes the low byte counts.
func is(err error, codes ...int) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (slices.Contains(codes, e.Code()) || slices.Contains(codes, e.Code()&0xff))
}

var errEnded = transition.Permanent(errors.New("the function that was to write in the transaction has ended it, and nothing has changed"))

// vetoing calls do, which calls code of the user, and reports if that has ended the transaction.
func (s *database) vetoing(do func() error) error {
	s.vetoed.Store(true)
	defer s.vetoed.Store(false)
	err := do()
	if errors.Is(err, sql.ErrTxDone) || is(err, lib.SQLITE_CONSTRAINT_COMMITHOOK) {
		return errEnded
	}
	return err
}

type transaction struct {
	*sql.Tx
	data []byte
	set  bool
}

func (t *transaction) SetData(data []byte) { t.data, t.set = append([]byte(nil), data...), true }

// Tx returns the transaction in which a stage ends: the rows that a Commit writes in it are there exactly when the static
// stage is. It is good until the Commit returns. Tx panics for the Tx of another store. If the Commit ends the transaction
// itself, nothing has changed, and Finish returns an error.
//
//	return func(ctx context.Context, tx store.Tx) error {
//		_, err := sqlite.Tx(tx).Exec(`INSERT INTO report (task, body) VALUES (?, ?)`, t.ID, body)
//		return err
//	}, nil
func Tx(tx store.Tx) *sql.Tx {
	t, ok := tx.(*transaction)
	if !ok {
		panic(fmt.Sprintf("sqlite: Tx is for transactions of this package's Store, and this is a %T", tx))
	}
	return t.Tx
}
