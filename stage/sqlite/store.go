package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/daimon-go/daimon/stage/internal/transition"
	"github.com/daimon-go/daimon/stage/store"
)

// Config configures a Store: see [Open]. The zero Config is safe: each call waits for the disk.
type Config struct {
	// Busy is how long a write waits for other writes before it fails with an error that says so; 0 means 10 s. Writes
	// of this process run in the order of the calls; there is no order between processes.
	Busy time.Duration

	// Relaxed lets calls return before their transaction is on the disk (synchronous = NORMAL instead of FULL). Even
	// so, a process that is killed loses nothing. A machine that loses its power may lose its latest transactions,
	// whole ones, so a stage may run twice.
	Relaxed bool

	// Counts makes the database count its tasks by triggers, so that Store.Counts need not read them. The first Open
	// with Counts counts the existing tasks; from then on the triggers count every change, by any program. They make
	// transitions more expensive.
	Counts bool
}

// Store is a store.Store in an SQLite database; [Open] makes one. Any goroutine may call its methods. They block, so
// actions call them in an act.Call or with stage.NewCall.
type Store struct{ *tasks }

var _ store.Store = Store{}

// database is the file, and the connections to it.
type database struct {
	path string
	busy time.Duration
	now  func() time.Time // in milliseconds

	writer *sql.DB       // one connection
	turn   chan struct{} // full while a call of this process writes
	reader *sql.DB       // query_only

	// vetoed is set while the SQL of others runs in a transaction of the writer: nothing can be committed then, whatever
	// that SQL says.
	vetoed atomic.Bool
}

// readers is how many connections read.
const readers = 4

// Open opens the database in the file with that path, or makes it, with its tables. It waits for other processes that
// do the same, and refuses tables of another release. The directory must exist, and allow for two more files, with -wal
// and -shm after the name of the database.
//
// A path may have any characters, but URIs ("file:…") are refused. So is ":memory:", since a database in memory would
// have one connection and no second process; use package memory.
func Open(path string, cfg Config) (*Store, error) { return open(path, cfg, time.Now) }

func open(path string, cfg Config, now func() time.Time) (*Store, error) {
	file, err := location(path)
	if err != nil {
		return nil, err
	}
	cfg.Busy = cmp.Or(cfg.Busy, 10*time.Second)
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
		"_busy_timeout": {fmt.Sprint(min(cfg.Busy.Milliseconds(), math.MaxInt32))},
	}, readers); err != nil {
		return nil, errors.Join(err, s.writer.Close())
	}
	ctx := context.Background()
	if err = s.setUp(ctx); err == nil {
		err = s.count(ctx, cfg.Counts)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

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
	if err := s.create(ctx); err != nil {
		return err
	}
	return s.failed("open", s.patiently(ctx, begun, s.prepare))
}

// Close closes all connections: call it when the engines have stopped. Calls under way finish or fail; later calls fail.
func (s *Store) Close() error { return errors.Join(s.reader.Close(), s.writer.Close()) }

// DB returns the connections for reading, for your own queries: at most four. They cannot write: see
// [Store.Update]. Queries do not wait for writes, and see the data that was committed when they begin. Close your Rows
// soon: open Rows occupy a connection that Get and List need, and keep old pages of the file from being reused.
//
// Do not open the file in any other way in this process, by another driver or as a plain file: closing it there would
// drop SQLite's locks (see "How To Corrupt An SQLite Database File", 2.2).
func (s *Store) DB() *sql.DB { return s.reader }

// Update calls do in a transaction on the connection for writing, to create your own tables, or to write rows that are
// not the result of a stage. All transitions of this process wait for it. Update commits when do returns nil. It rolls
// back when do panics or returns an error, which Update returns as it is. do must not end the transaction itself, call
// other methods of the Store that write, or change tables whose names begin with daimon_.
func (s *Store) Update(ctx context.Context, do func(*sql.Tx) error) error {
	var refused error
	err := s.write(ctx, "update", func(tx *sql.Tx) error {
		return s.vetoing(func() error {
			if refused = do(tx); refused != nil {
				return refused
			}
			_, err := tx.Exec(`UPDATE daimon_task SET id = id WHERE id = 0`) // refused if do has ended the transaction
			return err
		})
	})
	if refused != nil {
		return refused
	}
	return err
}

// EnqueueIn adds tasks as Enqueue does, in a transaction of this store's Update or Tx: the tasks are added exactly if
// your rows are (an outbox). Engines find them when they poll. The keys of tasks count as in Enqueue.
func (s *Store) EnqueueIn(tx *sql.Tx, tasks ...store.NewTask) ([]store.ID, error) {
	return s.insert(tx, tasks)
}

// failed adds the operation and the file to an error, unless it is an answer of the Store interface.
func (s *database) failed(what string, err error) error {
	answers := []error{store.ErrNotFound, store.ErrLeaseLost, store.ErrSuspended, store.ErrCanceled}
	if err == nil || slices.ContainsFunc(answers, func(answer error) bool { return errors.Is(err, answer) }) {
		return err
	}
	if is(err, lib.SQLITE_CONSTRAINT) { // such as a deferred one of the user's tables, checked by COMMIT
		err = transition.Permanent(err)
	}
	return fmt.Errorf("sqlite: %s in %s: %w", what, s.path, err)
}
