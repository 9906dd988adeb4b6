package postgres_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/postgres"
)

// database is that of this run of the tests: other packages may share the server.
var database = fmt.Sprint("tasks_", os.Getpid())

// shared is the server, which the first test asks for, with the database.
var shared = sync.OnceValues(func() (*pgserver.Server, error) {
	s, err := pgserver.Shared()
	if err != nil {
		return nil, err
	}
	running.Store(s)
	_, err = s.Create(database)
	return s, err
})

var running atomic.Pointer[pgserver.Server]

func TestMain(m *testing.M) {
	if os.Getenv(connectionVariable) != "" {
		if err := works(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if s := running.Load(); s != nil {
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// server returns the shared server.
func server(t testing.TB) *pgserver.Server {
	t.Helper()
	tier.Need(t, tier.Full, "starts PostgreSQL")
	tier.Tool(t, "initdb")
	s, err := shared()
	require.NoError(t, err)
	return s
}

var schemas atomic.Int64

// newConfig returns a schema of one's own in the shared server. The Unix socket asks for no password, whose check takes long.
func newConfig(t testing.TB) postgres.Config {
	t.Helper()
	return postgres.Config{
		Connection: server(t).Socket(database) + " pool_max_conns=4",
		Schema:     fmt.Sprintf(`its %d`, schemas.Add(1)),
	}
}

// open opens a store, and closes it in the end.
func open(t testing.TB, cfg postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// do executes SQL.
func do(t testing.TB, s *postgres.Store, text string, args ...any) {
	t.Helper()
	_, err := s.Pool().Exec(t.Context(), text, args...)
	require.NoError(t, err)
}

// count counts rows.
func count(t testing.TB, s *postgres.Store, from string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.Pool().QueryRow(t.Context(), `SELECT count(*) FROM `+from, args...).Scan(&n))
	return n
}
