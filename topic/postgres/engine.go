package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/topic"
)

// Options configure an Engine. The zero Options are good.
type Options struct {
	// Schema is the PostgreSQL schema that has the tables; "" means daimon_topics. Engines with the same schema share their topics.
	Schema string
	// Logger gets a line when the database cannot be reached, and when it can be reached again. nil: nothing is logged.
	Logger *zap.Logger
}

// Engine is a topic.Engine in a PostgreSQL database; [Open] makes one. Any goroutine may call its methods, which block.
type Engine struct {
	pool   *pgxpool.Pool
	log    *zap.Logger
	answer time.Duration // how long the database may take to answer, before the connection is given up and the call is made again
	schema string
	key    int32 // of advisory locks
	life   context.Context
	end    context.CancelFunc
	all    sync.WaitGroup // goroutines
	away   atomic.Bool    // the database has not answered

	machine int64         // of the table machine
	stored  chan struct{} // something was stored
	outbox  chan struct{} // something is in the outbox

	publishing sync.Mutex
	batch      atomic.Int64 // the latest one

	polls polls

	changing sync.Mutex
	members  map[member][]byte // the members on this machine, with their Info

	mu    sync.Mutex
	rules []topic.Rule // nil before Feed

	keeping sync.Mutex // held during an upkeep, or by a test that does the upkeep
	tidied  int64      // the last topic that an upkeep has looked at
}

var _ topic.Engine = (*Engine)(nil)

// answerTimeout is Engine.answer.
const answerTimeout = 10 * time.Second

// Open connects to the database, whose URL or parameters are as for pgxpool.ParseConfig, and makes the schema and its tables if
// they do not exist. It fails if the server is older than 13, or a standby, or if the encoding of the database is not UTF8.
func Open(ctx context.Context, database string, o Options) (*Engine, error) {
	return open(ctx, database, o, answerTimeout)
}

func open(ctx context.Context, database string, o Options, answer time.Duration) (*Engine, error) {
	cfg, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	cfg.ConnConfig.ConnectTimeout = cmp.Or(cfg.ConnConfig.ConnectTimeout, answerTimeout)
	// A call that was given up ends at the server, too. What was published is not lost in a crash of the server.
	for name, value := range map[string]string{
		"statement_timeout": fmt.Sprint(answer.Milliseconds()), "idle_in_transaction_session_timeout": "10s",
		"default_transaction_isolation": "read committed",
		"synchronous_commit":            "on", "application_name": cmp.Or(cfg.ConnConfig.RuntimeParams["application_name"], "daimon topics"),
	} {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	e := &Engine{
		pool: pool, log: cmp.Or(o.Logger, zap.NewNop()), answer: answer, schema: cmp.Or(o.Schema, "daimon_topics"),
		stored: make(chan struct{}, 1), outbox: make(chan struct{}, 1), members: map[member][]byte{},
	}
	key := fnv.New32a()
	_, _ = key.Write([]byte("daimon topics " + e.schema))
	e.key = int32(key.Sum32())
	e.polls.ask = func() {}
	e.life, e.end = context.WithCancel(context.Background())
	if err = e.check(ctx); err == nil {
		err = e.create(ctx)
	}
	if err == nil {
		err = pool.QueryRow(ctx, e.in(`INSERT INTO daimon_topics.machine DEFAULT VALUES RETURNING id`)).Scan(&e.machine)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("postgres: open the schema %s: %w", e.schema, err)
	}
	e.all.Go(e.hint)
	e.all.Go(e.upkeep)
	return e, nil
}

// Close says that the members of this machine have left, and closes all connections. Call it after the Group has ended.
func (e *Engine) Close() error {
	e.end()
	e.all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), e.answer)
	defer cancel()
	err := e.quit(ctx)
	e.pool.Close()
	if err != nil {
		err = fmt.Errorf("postgres: close: %w", err)
	}
	return err
}

func (e *Engine) check(ctx context.Context) error {
	var version int
	var standby bool
	var encoding string
	err := e.pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, pg_is_in_recovery(),
		current_setting('server_encoding')`).Scan(&version, &standby, &encoding)
	switch {
	case err != nil:
		return err
	case version < 130000:
		return fmt.Errorf("the server's version is %d, and PostgreSQL 13 is the oldest that will do", version)
	case standby:
		return errors.New("the server is a hot standby: connect to the primary (target_session_attrs=read-write chooses it)")
	case encoding != "UTF8":
		return fmt.Errorf("the encoding of the database is %s, and has to be UTF8", encoding)
	}
	return nil
}

// again makes a call, until it succeeds, ctx or the Engine ends, or the error is one that stays.
func (e *Engine) again(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		attempt, cancel := context.WithTimeout(ctx, e.answer)
		err := f(attempt)
		cancel()
		switch {
		case err == nil:
			if e.away.CompareAndSwap(true, false) {
				e.log.Info("topics: the database answers again")
			}
			return nil
		case ctx.Err() != nil || stays(err):
			return err
		case e.away.CompareAndSwap(false, true):
			e.log.Warn("topics: the database cannot be reached, or is not able to store", zap.Error(err))
		}
		e.pool.Reset() // its other connections are lost, too, or take as long
		rest(ctx, pause)
	}
}

// rest waits until d has passed, or ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// stays reports whether an error comes again if the call is made again: the data, a constraint, a right, a limit, or a table that
// there is not. The classes are in appendix A of PostgreSQL's documentation.
func stays(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code[:2] == "22" || e.Code[:2] == "23" || e.Code[:2] == "42" || e.Code[:2] == "54" || e.Code[:2] == "3F")
}

// hangUp closes a connection. If that takes long, it goes on in the background.
func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
