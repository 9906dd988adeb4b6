package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daimon-go/daimon/stage/store"
)

// Config configures a Store. The zero Config connects as psql does without arguments: see [pgconn.ParseConfig].
type Config struct {
	// Connection is the URL of the database, or its parameters as key=value: see [pgxpool.ParseConfig]. TLS and the
	// password are configured there, too.
	Connection string

	// Pool configures the pool of connections, in place of Connection. nil means that Connection does.
	Pool *pgxpool.Config

	// Schema is the PostgreSQL schema that has the tables; "" means daimon. Stores with the same schema share their tasks.
	Schema string

	// Pooler says that there is a pooler in transaction mode, such as PgBouncer, between the store and PostgreSQL. Then
	// the pool prepares no named statements, not even for your own queries, and Watch hears nothing: engines find tasks
	// of other processes by polling, and requests of other processes by heartbeats.
	Pooler bool

	// Counts makes the database count its tasks by triggers, so that Store.Counts need not read them. The first Open
	// with Counts counts the existing tasks, while other writers wait; from then on the triggers count every change, by
	// any program. They make transitions more expensive. The user has to own the table of tasks, or Open returns an
	// error.
	Counts bool
}

// Store is a store.Store in a PostgreSQL database; [Open] makes one. Any goroutine may call its methods. They block, so
// actions call them in an act.Call or with stage.NewCall.
type Store struct{ *tasks }

var (
	_ store.Store   = Store{}
	_ store.Watcher = Store{}
)

type tasks struct {
	pool   *pgxpool.Pool
	schema string // also the channel of notifications
	pooler bool
	sql    statements

	counted bool // the database counts

	claims
	finishes
	announcements
	heartbeats
}

// connectTimeout is how long a connection may take to be made, unless the Config says otherwise. pgxpool would give it two
// minutes, and a place in the pool all the while, even if the call that it is for was given up.
const connectTimeout = 10 * time.Second

// leastConnections is how many connections the pool must have: for a claim and a flush at the same time.
const leastConnections = 2

// Open connects to the database, and creates the schema and its tables if they do not exist. It waits for other
// processes that do the same. It fails if the server is older than 13, a standby, behind a pooler without
// Config.Pooler, or not read committed by default, or if the tables are of another release. The error says which.
func Open(ctx context.Context, cfg Config) (*Store, error) { return open(ctx, cfg, "") }

func open(ctx context.Context, cfg Config, clock string) (*Store, error) {
	pool, err := cfg.pool()
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	schema := orDefault(cfg.Schema)
	if len(schema) > 63 {
		return nil, fmt.Errorf("postgres: the name of the schema is longer than PostgreSQL's names, of 63 bytes: %s", schema)
	}
	s := &Store{&tasks{
		schema: schema, pooler: cfg.Pooler, sql: newStatements(schema, clock),
		claims:        claims{pause: 200 * time.Millisecond, since: map[string]time.Time{}},
		announcements: announcements{hints: map[string]struct{}{}},
		heartbeats:    heartbeats{make(chan *pgx.Conn, 1)},
	}}
	s.beating <- nil
	if s.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if clock != "" {
		s.pause = 0 // that clock makes jumps
	}
	s.life, s.end = context.WithCancel(context.Background())
	err = s.failed(ctx, "open", s.check(ctx))
	if err == nil {
		err = s.failed(ctx, "make the tables", s.create(ctx))
	}
	if err == nil {
		err = s.failed(ctx, "count", s.count(ctx, cfg.Counts))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func orDefault(schema string) string { return cmp.Or(schema, "daimon") }

func (cfg Config) pool() (*pgxpool.Config, error) {
	pool := cfg.Pool
	if pool == nil {
		var err error
		if pool, err = pgxpool.ParseConfig(cfg.Connection); err != nil {
			return nil, err
		}
	}
	pool = pool.Copy()
	if pool.MaxConns < leastConnections {
		return nil, fmt.Errorf("a pool of %d connections is too small: the store needs %d, and one more for each Commit at a time",
			pool.MaxConns, leastConnections)
	}
	if cfg.Pooler {
		pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if pool.ConnConfig.ConnectTimeout <= 0 {
		pool.ConnConfig.ConnectTimeout = connectTimeout
	}
	noteErrors(pool.ConnConfig)
	return pool, nil
}

// check tests the server, with a statement that every pooler lets through.
func (s *Store) check(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var version int
	var name string
	var pid uint32
	var standby bool
	var isolation string
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		pg_backend_pid(), pg_is_in_recovery(), current_setting('default_transaction_isolation')`,
		pgx.QueryExecModeExec).Scan(&version, &name, &pid, &standby, &isolation)
	switch {
	case err != nil:
		return err
	case version < 130000:
		return fmt.Errorf("the server is PostgreSQL %s, and 13 is the oldest that will do", name)
	case standby:
		return errors.New("the server is a hot standby, on which nothing can be written: connect to the primary " +
			"(target_session_attrs=read-write chooses it among several hosts)")
	case isolation != "read committed":
		return fmt.Errorf("default_transaction_isolation is %s for this user or database: the store needs read committed",
			isolation)
	case !s.pooler && pid != conn.Conn().PgConn().PID():
		// The server's number of a connection is not the one that was announced.
		return errors.New("there is a pooler such as PgBouncer between this program and the server: " +
			"set Config.Pooler, or connect to the server itself")
	}
	return nil
}

// Close closes all connections. It waits for calls under way, and for queries of Pool; later calls fail. Watch returns soon.
func (s *Store) Close() error {
	s.mu.Lock()
	s.announcing.Lock()
	s.end() // nothing begins after that
	s.announcing.Unlock()
	s.mu.Unlock()
	if conn := <-s.beating; conn != nil { // after the heartbeat under way
		hangUp(conn)
	}
	s.beating <- nil
	s.flushes.Wait()
	s.pool.Close()
	return nil
}

// Pool returns the pool of connections, for your own queries. If you keep a connection for long, claims and the ends of
// stages may have to wait.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// failed adds the operation to an error, and says what to do about it.
func (s *tasks) failed(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return fmt.Errorf("postgres: %s in schema %s: %w%s", what, s.schema, err, advice(err))
}

// advice explains errors of a configuration. The codes are in appendix A of PostgreSQL's documentation.
func advice(err error) string {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}
	switch e.Code {
	case "28P01", "28000":
		return " (the server refuses this user or password: see Config.Connection)"
	case "3D000":
		return " (create the database first: the store makes only its schema)"
	case "42501":
		return " (the user lacks rights: grant CREATE on the database, or have another user execute DDL and grant " +
			"USAGE on the schema and all rights on its tables and sequences)"
	case "53300":
		return " (the server's max_connections is too small for the pools of all processes, which need " +
			"at least 4 connections each: 2, one for heartbeats and one that listens)"
	case "26000", "42P05":
		return " (named statements get lost or mixed up: set Config.Pooler if there is a pooler before the server)"
	case "25006":
		return " (the server lets nothing be written: is it a hot standby?)"
	case "42P01", "3F000":
		return " (the tables of the store are gone)"
	}
	return ""
}

// patience returns how long a call may wait for a row that another one has locked: not until ctx has ended, since then
// nobody would hear that the wait has ended, too. An error of that wait leaves the connection as it is. It is also how long
// a transaction with a lock may wait for its next statement.
func patience(ctx context.Context) time.Duration {
	const most = 10 * time.Second
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	return max(time.Millisecond, min(most, time.Until(deadline)*3/4))
}
