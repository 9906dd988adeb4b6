//go:build unix

package sqlite_test

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

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/stage/internal/storm"
	"github.com/daimon-go/daimon/stage/sqlite"
	"github.com/daimon-go/daimon/stage/store"
)

func init() { child = stormy }

const numberVariable = "DAIMON_SQLITE_NUMBER" // of the process in a storm

// stormy is a process with an engine that works until SIGTERM.
func stormy(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("SIGTERM shuts it down from now on")
	number, err := strconv.Atoi(os.Getenv(numberVariable))
	if err != nil {
		return err
	}
	s, err := sqlite.Open(path, sqlite.Config{Relaxed: true})
	if err != nil {
		return err
	}
	return errors.Join(storm.Work(ctx, s, number, step), s.Close())
}

func step(_ context.Context, tx store.Tx, id store.ID, at string) error {
	_, err := sqlite.Tx(tx).Exec(`INSERT INTO step (task, stage) VALUES (?, ?)`, id, at)
	return err
}

// TestStorm has four processes work, and kills and stops them at random moments.
func TestStorm(t *testing.T) {
	tier.Need(t, tier.Full, "takes longer than several leases")
	t.Parallel()
	path := newPath(t)
	s := open(t, path, sqlite.Config{Relaxed: true, Counts: true, Busy: time.Minute}) // which the four make very busy
	lock := raw(t, path)
	do(t, lock, `CREATE TABLE step (task INTEGER NOT NULL, stage TEXT NOT NULL)`)
	storm.Run(t, storm.Site{
		Store: s, DB: s.DB(), Steps: "step", Step: step,
		Worker: func(number int) *exec.Cmd {
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), self, path)
			cmd.Env = append(os.Environ(), childVariable+"=storm", fmt.Sprint(numberVariable, "=", number))
			return cmd
		},
		Stop: func(t testing.TB, w *exec.Cmd) { // not in the middle of a write, which would keep all others from writing
			require.Eventually(t, func() bool {
				var status syscall.WaitStatus
				for !status.Stopped() { // all its threads; once more, if somebody has let it go on
					require.NoError(t, w.Process.Signal(syscall.SIGSTOP))
					_, err := syscall.Wait4(w.Process.Pid, &status, syscall.WUNTRACED|syscall.WNOHANG, nil)
					require.NoError(t, err)
				}
				if _, err := lock.Exec(`BEGIN IMMEDIATE`); err == nil {
					do(t, lock, `COMMIT`)
					return true
				}
				require.NoError(t, w.Process.Signal(syscall.SIGCONT))
				return false
			}, 2*time.Minute, 7*time.Millisecond)
		},
	})
	intact(t, s.DB())
}
