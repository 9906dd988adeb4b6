package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/testing/pgserver"
	"github.com/daimon-go/daimon/stage/internal/storm"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var tests = pgserver.NewTests("tasks")

// database is the one of this run of the tests.
var database = tests.Database

func TestMain(m *testing.M) {
	if os.Getenv(connectionVariable) != "" {
		if err := works(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := tests.Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// server returns the shared server.
func server(t testing.TB) *pgserver.Server {
	t.Helper()
	return tests.Server(t)
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

// The environment of a process that works.
const (
	connectionVariable = "DAIMON_POSTGRES_CONNECTION" // makes this program such a process
	schemaVariable     = "DAIMON_POSTGRES_SCHEMA"
	numberVariable     = "DAIMON_POSTGRES_NUMBER"
)

// works is a process with an engine that works until SIGTERM.
func works() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("SIGTERM shuts it down from now on")
	number, err := strconv.Atoi(os.Getenv(numberVariable))
	if err != nil {
		return err
	}
	cfg := postgres.Config{Connection: os.Getenv(connectionVariable), Schema: os.Getenv(schemaVariable)}
	s, err := postgres.Open(ctx, cfg)
	for try := 0; err != nil; try++ { // the server may be too busy
		if ctx.Err() != nil {
			return nil
		}
		if try == 10 {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		s, err = postgres.Open(ctx, cfg)
	}
	return errors.Join(storm.Work(ctx, s, number, stepIn(s)), s.Close())
}

// stepIn writes to the table of a storm.
func stepIn(s *postgres.Store) storm.Step {
	return func(ctx context.Context, tx store.Tx, id store.ID, at string) error {
		_, err := postgres.Tx(tx).Exec(ctx, `INSERT INTO `+s.Schema()+`.step VALUES ($1, $2)`, id, at)
		return err
	}
}

// TestStorm has four processes work, and kills and stops them at random moments.
func TestStorm(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Counts = true
	s := open(t, cfg)
	do(t, s, `CREATE TABLE `+s.Schema()+`.step (task bigint NOT NULL, stage text NOT NULL)`)
	db := stdlib.OpenDBFromPool(s.Pool())
	defer func() { require.NoError(t, db.Close()) }()
	storm.Run(t, storm.Site{
		Store: s, DB: db, Steps: s.Schema() + ".step", Step: stepIn(s),
		Worker: func(number int) *exec.Cmd {
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(),
				connectionVariable+"="+server(t).Socket(database)+" pool_max_conns=6 application_name=processes",
				schemaVariable+"="+cfg.Schema, fmt.Sprint(numberVariable, "=", number))
			return cmd
		},
		Stop: func(t testing.TB, w *exec.Cmd) { require.NoError(t, w.Process.Signal(syscall.SIGSTOP)) },
	})
}
