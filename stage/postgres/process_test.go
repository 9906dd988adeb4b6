package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/stage/internal/storm"
	"github.com/daimon-go/daimon/stage/postgres"
	"github.com/daimon-go/daimon/stage/store"
)

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
