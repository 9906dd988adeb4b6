package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/postgres"
)

// The environment of a process that works.
const (
	connectionVariable = "DAIMON_POSTGRES_CONNECTION" // makes this program such a process
	schemaVariable     = "DAIMON_POSTGRES_SCHEMA"
)

// brief is the lease of those processes.
const brief = 2 * time.Second

// works is a process with an engine that works until SIGTERM.
func works() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("SIGTERM ends it in order from now on")
	s, err := postgres.Open(ctx, postgres.Config{Connection: os.Getenv(connectionVariable), Schema: os.Getenv(schemaVariable)})
	switch {
	case err != nil && ctx.Err() != nil: // it was not there yet
		return nil
	case err != nil:
		return err
	}
	cfg := counted(s, 200*time.Millisecond)
	cfg.Workers, cfg.Lease, cfg.Heartbeat, cfg.Attempts = 4, brief, brief/10, 1000
	e, err := stage.New(cfg)
	if err == nil {
		err = e.Run(ctx)
	}
	return errors.Join(err, s.Close())
}

// worker starts such a process, and waits until it heeds SIGTERM.
func (l *ledger) worker(connection string) *exec.Cmd {
	self, err := os.Executable()
	l.NoError(err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), connectionVariable+"="+connection, schemaVariable+"="+l.cfg.Schema)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	l.NoError(err)
	l.NoError(cmd.Start())
	l.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	_, err = out.Read(make([]byte, 1))
	l.NoError(err)
	return cmd
}

// TestProcesses has four processes work, kills them with SIGKILL and stops them with SIGSTOP for longer than a lease, and pauses
// kinds, at random moments. All tasks finish, and each stage was committed once.
func TestProcesses(t *testing.T) {
	t.Parallel()
	connection := server(t).Socket("tasks") + " pool_max_conns=6 application_name=processes"
	l := newLedger(t, newConfig(t))
	l.enqueue(tier.Choose(0, 60, 300))
	var workers [4]*exec.Cmd
	for i := range workers {
		workers[i] = l.worker(connection)
	}
	kills, stops := 0, 0
	stopped := map[int]time.Time{} // when, by the place of the worker
	for end := time.Now().Add(4 * time.Minute); ; {
		if l.ended() {
			if min(kills, stops, l.lost()) > 1 {
				break
			}
			l.enqueue(20) // or it would be over before enough has happened
		}
		require.True(t, time.Now().Before(end), "the tasks do not end")
		_, err := l.direct.SetPaused(t.Context(), []string{"job", "urgent job"}[rand.IntN(2)], rand.IntN(3) == 0)
		require.NoError(t, err)
		time.Sleep(50*time.Millisecond + rand.N(250*time.Millisecond))
		i := rand.IntN(len(workers))
		since, stands := stopped[i]
		switch {
		case stands && time.Since(since) < 4*brief/3:
		case stands:
			require.NoError(t, workers[i].Process.Signal(syscall.SIGCONT))
			delete(stopped, i)
		case rand.IntN(3) == 0:
			require.NoError(t, workers[i].Process.Signal(syscall.SIGSTOP))
			stopped[i] = time.Now()
			stops++
		default:
			require.NoError(t, workers[i].Process.Kill())
			require.ErrorContains(t, workers[i].Wait(), "killed")
			workers[i] = l.worker(connection)
			kills++
		}
	}
	for i := range stopped {
		require.NoError(t, workers[i].Process.Signal(syscall.SIGCONT))
	}
	for _, w := range workers {
		require.NoError(t, w.Process.Signal(syscall.SIGTERM))
	}
	for _, w := range workers {
		require.NoError(t, w.Wait())
	}
	lost := l.lost()
	t.Logf("%d kills and %d stops; %d leases were lost", kills, stops, lost)
	l.verdict(4*(kills+stops), fmt.Sprint(kills, " kills, ", stops, " stops"))
	l.disconnected("processes")
}
