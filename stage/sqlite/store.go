package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/daimon-go/daimon/stage"
)

// Config is how a Store is opened. The zero Config is a good one.
type Config struct {
	// Busy is how long a write waits for others before it is an error that says so; 0 means 10 s. Those of this process
	// come in order, those of several processes in the order of chance.
	Busy time.Duration

	// Relaxed lets the disk have a transaction a little later than whoever is told that it is done (synchronous =
	// NORMAL instead of FULL). A process that is killed loses nothing then, either; a machine that loses its power
	// may lose the latest transactions, whole ones, so a stage may run twice.
	Relaxed bool

	// Readers bounds the connections that read, and so the queries of DB at a time; 0 means 4.
	Readers int
}

// Store is a stage.Store in an SQLite database. Open makes one.
type Store struct{ *tasks }

var _ stage.Store = Store{}

// database is the file, and the connections to it.
type database struct {
	path string
	busy time.Duration
	now  func() time.Time // in milliseconds

	writer *sql.DB       // one connection
	turn   chan struct{} // full while somebody writes
	reader *sql.DB       // query_only

	// vetoed is set while the SQL of others runs in a transaction of the writer: nothing can be committed then, whatever
	// that SQL says.
	vetoed atomic.Bool
}

// Open opens the database in the file with that path, makes it if it is not there, and applies the migrations that it
// has not had; it waits for other processes that do the same. The directory must be there, and allow for files beside
// the database, named the same with -wal and -shm behind.
//
// The path is a path and nothing else, whatever characters it has. A database in memory would have one connection and
// no second process; package memory is better at that, so ":memory:" is refused, and so is "file:…".
func Open(path string, cfg Config) (*Store, error) { return open(path, cfg, time.Now) }

func open(path string, cfg Config, now func() time.Time) (*Store, error) {
	file, err := location(path)
	if err != nil {
		return nil, err
	}
	if cfg.Busy == 0 {
		cfg.Busy = 10 * time.Second
	}
	if cfg.Readers == 0 {
		cfg.Readers = 4
	}
	s := &Store{&tasks{database: database{
		path: path, busy: cfg.Busy, turn: make(chan struct{}, 1),
		now: func() time.Time { return now().UTC().Truncate(time.Millisecond) },
	}}}
	if s.writer, err = s.connect(file, url.Values{
		"_txlock":      {"immediate"}, // so that nothing is decided that another process could undo
		"_synchronous": {map[bool]string{false: "FULL", true: "NORMAL"}[cfg.Relaxed]},
	}, 1); err != nil {
		return nil, err
	}
	if s.reader, err = s.connect(file, url.Values{
		"mode":          {"rw"},
		"_query_only":   {"1"},
		"_busy_timeout": {fmt.Sprint(cfg.Busy.Milliseconds())},
	}, cfg.Readers); err != nil {
		return nil, errors.Join(err, s.writer.Close())
	}
	if err := s.setUp(context.Background()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// location is where the file is, for as long as the process lives, as the URI of it.
func location(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("sqlite: no path")
	case path == ":memory:":
		return "", errors.New("sqlite: :memory: is no file; see package memory for tasks that are kept there")
	case strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("sqlite: %s is a URI; a path is wanted, and ./ before one that really begins so", path)
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("sqlite: there is a NUL in the path %q", path)
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: %w", err)
	}
	file = filepath.ToSlash(file)
	if !strings.HasPrefix(file, "/") { // C:/
		file = "/" + file
	}
	return "file://" + (&url.URL{Path: file}).EscapedPath(), nil
}

// setUp makes the database and its connections ready.
func (s *tasks) setUp(ctx context.Context) error {
	var mode string
	begun := time.Now()
	err := s.patiently(ctx, begun, func() error { return s.writer.QueryRow(`PRAGMA journal_mode = WAL`).Scan(&mode) })
	if err == nil && mode != "wal" {
		err = fmt.Errorf("its journal mode stays %s, and cannot be WAL", mode)
	}
	if err != nil {
		return s.failed("open", err)
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.failed("open", s.patiently(ctx, begun, s.prepare))
}

// Close closes all connections. Calls that are under way end first or with an error; those to come end with one.
func (s *Store) Close() error { return errors.Join(s.reader.Close(), s.writer.Close()) }

// DB is for your own queries: at most Config.Readers connections that cannot write. They are not held up by a write,
// and see what was committed when they begin. Whoever keeps rows open keeps a connection from Get and List, and old
// pages from being used again.
//
// Nobody else should open the file within this process, by another driver or as a plain file: closing it there would
// take SQLite's locks away (see "How To Corrupt An SQLite Database File", 2.2).
func (s *Store) DB() *sql.DB { return s.reader }

// Update calls do in a transaction of its own, on the connection that writes, for your own tables: to make them, and
// for what is not the result of a stage. All transitions of this process wait for it. It commits when do returns nil,
// and rolls back when do returns an error, which is returned as it is, or panics; do must not end the transaction
// itself, and must not call other methods of the Store that write. Tables whose names begin with daimon_ are ours.
func (s *Store) Update(ctx context.Context, do func(*sql.Tx) error) error {
	var refused error
	err := s.write(ctx, "update", func(tx *sql.Tx) error {
		return s.vetoing(func() error {
			if refused = do(tx); refused != nil {
				return refused
			}
			_, err := tx.Exec(`UPDATE daimon_task SET id = id WHERE id = 0`) // refused where the transaction is gone
			return err
		})
	})
	if refused != nil {
		return refused
	}
	return err
}

// EnqueueIn is Enqueue in a transaction of yours, of this store's Update or SQL: the task is there exactly if your rows
// are. at is the first stage of its chain. Engines find it when they poll.
func (s *Store) EnqueueIn(tx *sql.Tx, kind, at string, data []byte) (stage.ID, error) {
	return s.insert(tx, kind, at, data)
}

// failed names the operation and the file in an error that is not an answer.
func (s *database) failed(what string, err error) error {
	for _, answer := range []error{stage.ErrNotFound, stage.ErrLeaseLost, stage.ErrSuspended, stage.ErrCancelled} {
		if errors.Is(err, answer) {
			return err
		}
	}
	switch {
	case err == nil:
		return nil
	case is(err, lib.SQLITE_CONSTRAINT): // as a rule of somebody's tables that is looked at when a commit is over
		err = stage.Permanent(err)
	}
	return fmt.Errorf("sqlite: %s in %s: %w", what, s.path, err)
}
