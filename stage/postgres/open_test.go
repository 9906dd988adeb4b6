package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

// unique returns a name that no test of this run has had.
func unique(name string) string { return fmt.Sprint(name, "_", os.Getpid(), "_", schemas.Add(1)) }

// Every way to be misconfigured that is known has a sentence.
func TestOpenSays(t *testing.T) {
	srv := server(t)
	s := open(t, newConfig(t))
	as := func(user, password, database string) string {
		u, err := url.Parse(srv.URL(database))
		require.NoError(t, err)
		u.User = url.UserPassword(user, password)
		return u.String()
	}
	guest := unique("guest")
	do(t, s, `CREATE ROLE `+guest+` LOGIN PASSWORD 'guest'`)
	newer := newConfig(t)
	do(t, open(t, newer), `UPDATE `+pgx.Identifier{newer.Schema}.Sanitize()+`.version SET number = 1000`)
	tier.Tool(t, "pgbouncer")
	bouncer, err := srv.Bounce(4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bouncer.Close()) })
	for _, row := range []struct {
		name string
		cfg  postgres.Config
		says []string
	}{
		{"a wrong password", postgres.Config{Connection: as("postgres", "wrong", database)},
			[]string{"password authentication failed", "the server refuses this user or password"}},
		{"no such database", postgres.Config{Connection: as("postgres", "secret", "nothing")},
			[]string{`database "nothing" does not exist`, "create the database first"}},
		{"no rights", postgres.Config{Connection: as(guest, "guest", database), Schema: "elsewhere"},
			[]string{"permission denied", "grant CREATE on the database, or have another user execute DDL"}},
		{"nobody listens", postgres.Config{Connection: "postgres://postgres@127.0.0.1:1/tasks"}, []string{"connection refused"}},
		{"no URL", postgres.Config{Connection: "postgres://127.0.0.1:port/tasks"}, []string{"cannot parse"}},
		{"a small pool", postgres.Config{Connection: srv.URL(database) + "&pool_max_conns=1"},
			[]string{"a pool of 1 connections is too small: the store needs 2, and one more for each Commit at a time"}},
		{"another isolation", postgres.Config{Connection: srv.URL(database) + "&default_transaction_isolation=serializable"},
			[]string{"default_transaction_isolation is serializable", "the store needs read committed"}},
		{"nothing can be written", postgres.Config{
			Connection: srv.URL(database) + "&default_transaction_read_only=on", Schema: "unwritten",
		}, []string{"read-only transaction", "the server lets nothing be written"}},
		{"a newer schema", newer, []string{"its tables are of version 1000, and this program knows version 1"}},
		{"a long name", postgres.Config{Connection: srv.URL(database), Schema: strings.Repeat("x", 64)},
			[]string{"longer than PostgreSQL's names"}},
		{"a pooler", postgres.Config{Connection: bouncer.URL(database)},
			[]string{"there is a pooler", "set Config.Pooler, or connect to the server itself"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), row.cfg)
			for _, says := range row.says {
				require.ErrorContains(t, err, says)
			}
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// A server with hardly any connections, and a standby of it.
func TestOpenOfOtherServers(t *testing.T) {
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	srv, err := pgserver.Start(pgserver.Config{Settings: map[string]string{
		"max_connections": "5", "superuser_reserved_connections": "0", "max_wal_senders": "0", "fsync": "off",
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	s, err := postgres.Open(t.Context(), postgres.Config{Connection: srv.URL("postgres") + "&pool_max_conns=5"})
	require.NoError(t, err)
	var taken []*pgxpool.Conn
	for range 5 {
		c, err := s.Pool().Acquire(t.Context())
		require.NoError(t, err)
		taken = append(taken, c)
	}
	_, err = postgres.Open(t.Context(), postgres.Config{Connection: srv.URL("postgres")})
	require.ErrorContains(t, err, "max_connections is too small")
	require.ErrorContains(t, err, "at least 4 connections each")
	for _, c := range taken {
		c.Release()
	}
	require.NoError(t, s.Close())

	require.NoError(t, srv.Standby())
	_, err = postgres.Open(t.Context(), postgres.Config{Connection: srv.URL("postgres")})
	require.ErrorContains(t, err, "the server is a hot standby")
}

// TestDDL has an administrator execute it, and a user without rights to create anything work.
func TestDDL(t *testing.T) {
	srv := server(t)
	migrated, worker := unique("migrated"), unique("worker")
	url, err := srv.Create(migrated)
	require.NoError(t, err)
	const schema = `My "tasks"`
	_, err = srv.Do(migrated, postgres.DDL(schema))
	require.NoError(t, err)
	_, err = srv.Do(migrated, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'worker'; GRANT USAGE ON SCHEMA "My ""tasks""" TO %[1]s;
		GRANT ALL ON ALL TABLES IN SCHEMA "My ""tasks""" TO %[1]s;
		GRANT ALL ON ALL SEQUENCES IN SCHEMA "My ""tasks""" TO %[1]s`, worker))
	require.NoError(t, err)
	s := open(t, postgres.Config{Connection: strings.Replace(url, "postgres:secret", worker+":worker", 1), Schema: schema})
	claimed(t, s, time.Hour)
	enqueued(t, s, store.NewTask{Kind: "a", Stage: "CREATED", Key: "k"})
	require.Contains(t, postgres.DDL(""), `CREATE SCHEMA "daimon";`)
}

// TestOpenTogether has many make the schema at once.
func TestOpenTogether(t *testing.T) {
	cfg := newConfig(t)
	cfg.Connection = strings.Replace(cfg.Connection, "pool_max_conns=8", "pool_max_conns=2", 1)
	var all sync.WaitGroup
	errs := make([]error, 8)
	stores := make([]*postgres.Store, len(errs))
	for i := range errs {
		all.Go(func() { stores[i], errs[i] = postgres.Open(t.Context(), cfg) })
	}
	all.Wait()
	for i, s := range stores {
		require.NoError(t, errs[i])
		require.NoError(t, s.Close())
	}
}

// What is closed says so.
func TestClosed(t *testing.T) {
	s, err := postgres.Open(t.Context(), newConfig(t))
	require.NoError(t, err)
	l := claimed(t, s, time.Hour)
	require.NoError(t, s.Close())
	_, err = s.Get(t.Context(), l.Task)
	require.ErrorContains(t, err, "closed pool")
	require.Error(t, s.Finish(t.Context(), l, last, nil))
	require.NoError(t, s.Close())
}

// What a call says when somebody has removed the tables.
func TestTablesAreGone(t *testing.T) {
	s := open(t, newConfig(t))
	do(t, s, `DROP SCHEMA `+s.Schema()+` CASCADE`)
	_, err := s.Enqueue(t.Context(), store.NewTask{Kind: "a", Stage: "CREATED"})
	require.ErrorContains(t, err, "the tables of the store are gone")
}

// A pool of the user's. All connections are made as it says: that of heartbeats, and the one that listens, too.
func TestPoolOfOnesOwn(t *testing.T) {
	cfg := newConfig(t)
	pool, err := pgxpool.ParseConfig(cfg.Connection)
	require.NoError(t, err)
	name := unique("tasks")
	pool.ConnConfig.RuntimeParams["application_name"] = name
	s := open(t, postgres.Config{Pool: pool, Schema: cfg.Schema})
	_, stop := hints(t, s)
	listens(t, s, 1)
	require.NoError(t, renewed(t, s, claimed(t, s, time.Hour), 2*time.Minute))
	require.GreaterOrEqual(t, count(t, s, `pg_stat_activity WHERE application_name = $1`, name), 3)
	require.ErrorIs(t, stop(), context.Canceled)
	require.EqualValues(t, 4, s.Pool().Config().MaxConns)
	require.Equal(t, 10*time.Second, s.Pool().Config().ConnConfig.ConnectTimeout)
	require.Zero(t, pool.ConnConfig.ConnectTimeout, "the user's is left alone")

	pool.ConnConfig.ConnectTimeout = time.Minute
	s = open(t, postgres.Config{Pool: pool, Schema: cfg.Schema})
	require.Equal(t, time.Minute, s.Pool().Config().ConnConfig.ConnectTimeout)
}
