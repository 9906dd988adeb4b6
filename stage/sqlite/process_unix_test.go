//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/stage"
	"github.com/daimon-go/daimon/stage/internal/storm"
	"github.com/daimon-go/daimon/stage/sqlite"
)

// What follows happens to engines in processes of their own, which die or stand still.

func init() {
	children["works"] = works
	children["storm"] = stormy
}

// halves is the chain of these tests: each stage inserts a row, see makeTables.
var halves = stage.Begin("NEW").Then("FIRST", "insert", "HALF").Then("SECOND", "insert", "WHOLE")

func insertStep(_ context.Context, t *stage.Task) (stage.Commit, error) {
	return func(ctx context.Context, tx stage.Tx) error { return step(ctx, tx, t.ID, t.Stage) }, nil
}

// engineOf is one over s, with a lease that does not last.
func engineOf(t testing.TB, s stage.Store, p stage.ProcessorFunc) *stage.Engine {
	t.Helper()
	e, err := stage.New(impatient(s, p))
	require.NoError(t, err)
	return e
}

// lease is short, but not so short that a living worker loses it on a machine that does other things too.
const lease = 5 * time.Second

// impatient is patient but for its short times.
func impatient(s stage.Store, p stage.ProcessorFunc) stage.Config {
	cfg := patient(s, p)
	cfg.Lease, cfg.Heartbeat, cfg.Poll = lease, lease/10, 50*time.Millisecond
	return cfg
}

// patient is what an engine has by default.
func patient(s stage.Store, p stage.ProcessorFunc) stage.Config {
	return stage.Config{
		Store: s, Kinds: map[string]stage.Kind{"job": {Chain: halves}}, Provider: stage.Processors{"insert": p}, Logger: zap.NewNop(),
	}
}

// settled waits until no task is to run.
func settled(t testing.TB, s stage.Store) []stage.Task {
	t.Helper()
	require.Eventually(t, func() bool {
		left, err := s.List(t.Context(), stage.Selection{Running: true, Limit: 1})
		require.NoError(t, err)
		return len(left) == 0
	}, time.Minute, 10*time.Millisecond)
	return list(t, s)
}

func list(t testing.TB, s stage.Store) []stage.Task {
	t.Helper()
	tasks, err := s.List(t.Context(), stage.Selection{})
	require.NoError(t, err)
	return tasks
}

// works is a process with an engine that works until it is killed. It says what it does, a line each, and comes to an
// end of its own making where the environment says so.
func works(path string) error {
	s, err := sqlite.Open(path, sqlite.Config{})
	if err != nil {
		return err
	}
	m := &mortal{Store: s, end: os.Getenv(endVariable)}
	process := func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
		fmt.Println("process", t.Stage)
		m.reach("in " + t.Stage)
		if gate := os.Getenv(gateVariable); gate != "" {
			for _, err := os.Stat(gate); err != nil; _, err = os.Stat(gate) {
				time.Sleep(5 * time.Millisecond)
			}
			<-ctx.Done()
			fmt.Println("cause", context.Cause(ctx))
			time.Sleep(lease / 4) // more heartbeats, if there still are any
		}
		commit, err := insertStep(ctx, t)
		return func(ctx context.Context, tx stage.Tx) error {
			err := commit(ctx, tx)
			m.reach("writing " + t.Stage)
			return err
		}, err
	}
	cfg := impatient(m, process)
	e, err := stage.New(cfg)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}

const (
	endVariable  = "DAIMON_SQLITE_END"  // the point at which the process kills itself
	gateVariable = "DAIMON_SQLITE_GATE" // a file: processors wait until it is there, and then for the end of their context
)

// mortal is a store whose process ends at a point.
type mortal struct {
	stage.Store
	end string
}

func (m *mortal) reach(point string) {
	if point == m.end {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (m *mortal) Claim(ctx context.Context, c stage.Claim) ([]stage.Task, error) {
	tasks, err := m.Store.Claim(ctx, c)
	if len(tasks) > 0 {
		m.reach("claimed at " + tasks[0].Stage)
	}
	return tasks, err
}

func (m *mortal) Enter(ctx context.Context, l stage.Lease, at string, attempt int) (stage.Task, error) {
	m.reach("before " + at)
	t, err := m.Store.Enter(ctx, l, at, attempt)
	m.reach("entered " + at)
	fmt.Println("enter", err)
	return t, err
}

func (m *mortal) Finish(ctx context.Context, l stage.Lease, p stage.Passage, commit stage.Commit) error {
	m.reach("computed " + p.From)
	err := m.Store.Finish(ctx, l, p, commit)
	m.reach("finished " + p.From)
	fmt.Println("finish", err)
	return err
}

func (m *mortal) Return(ctx context.Context, l stage.Lease, r stage.Return) (stage.Status, error) {
	s, err := m.Store.Return(ctx, l, r)
	fmt.Println("return", err)
	return s, err
}

// TestKilledAtEveryBoundary kills a process, by SIGKILL, at each point of a task's way where something may be half
// done. What it has written is there exactly if the stage says so, and another one finishes the task.
func TestKilledAtEveryBoundary(t *testing.T) {
	for _, row := range []struct {
		end     string
		at      string // the stage that is left in the database
		rows    int
		repeats string // the stage that is processed a second time
	}{
		{"claimed at FIRST", "FIRST", 0, ""},
		{"in FIRST", "FIRST", 0, "FIRST"},
		{"computed FIRST", "FIRST", 0, "FIRST"},
		{"writing FIRST", "FIRST", 0, "FIRST"},
		{"finished FIRST", "HALF", 1, ""},
		{"before SECOND", "HALF", 1, ""},
		{"entered SECOND", "SECOND", 1, ""},
		{"in SECOND", "SECOND", 1, "SECOND"},
		{"writing SECOND", "SECOND", 1, "SECOND"},
		{"finished SECOND", "WHOLE", 2, ""},
	} {
		t.Run(row.end, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			s := open(t, path, sqlite.Config{})
			makeTables(t, s)
			id := enqueued(t, s, stage.NewTask{Kind: "job", Stage: "NEW"})

			said, err := startChild(t, "works", path, endVariable+"="+row.end)()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, said)
			require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), said)

			left, err := s.Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, row.at, left.Stage)
			require.Equal(t, row.rows, count(t, s.DB(), "step"))
			if row.at != "WHOLE" {
				require.Equal(t, stage.InProcessing, left.Status)
			}

			var processed []string
			e := engineOf(t, s, func(ctx context.Context, t *stage.Task) (stage.Commit, error) {
				processed = append(processed, t.Stage)
				return insertStep(ctx, t)
			})
			runs(t, e)
			done := settled(t, s)[0]
			require.Equal(t, "WHOLE", done.Stage)
			require.Equal(t, stage.Normal, done.Status)
			for _, at := range []string{"FIRST", "SECOND"} {
				require.Equal(t, 1, count(t, s.DB(), "step WHERE stage = ?", at))
				times := strings.Count(said, "process "+at) + strings.Count(strings.Join(processed, " "), at)
				want := 1
				if at == row.repeats {
					want = 2
				}
				require.Equal(t, want, times, "how often %s is processed", at)
			}
			intact(t, s.DB())
		})
	}
}

// runs runs e until the test ends.
func runs(t testing.TB, e *stage.Engine) {
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = e.Run(ctx) })
	t.Cleanup(func() { stop(); all.Wait() })
}

// TestStoppedProcessLosesItsLease stops a process, by SIGSTOP, for longer than its lease. Another finishes
// its task; when it goes on, each of its changes is refused, and the context of its processor ends.
func TestStoppedProcessLosesItsLease(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := open(t, path, sqlite.Config{})
	makeTables(t, s)
	id := enqueued(t, s, stage.NewTask{Kind: "job", Stage: "NEW"})

	gate := filepath.Join(t.TempDir(), "gate")
	cmd := childCommand(t, "works", path, gateVariable+"="+gate)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "process FIRST", lines.Text())
	time.Sleep(3 * lease / 2)
	held, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, int64(1), held.Token)
	require.True(t, held.Due.After(time.Now()), "a living worker keeps its task beyond the lease: %v", held.Due)

	stopBetweenWrites(t, cmd.Process, raw(t, path))
	runs(t, engineOf(t, s, insertStep))
	done := settled(t, s)[0]
	require.Equal(t, "WHOLE", done.Stage)
	require.Equal(t, int64(2), done.Token)

	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.True(t, lines.Scan())
	require.Equal(t, "cause stage: lease lost", lines.Text())
	time.Sleep(time.Second)
	require.NoError(t, cmd.Process.Kill())
	for lines.Scan() { // whatever else it has tried
		require.Contains(t, lines.Text(), stage.ErrLeaseLost.Error())
	}
	_ = cmd.Wait()
	after, err := s.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, done, after)
	require.Equal(t, 2, count(t, s.DB(), "step"))
}

// stopBetweenWrites stops a process. One that stands still in the middle of a write keeps all others from writing for as long
// as it does, so that is tried again.
func stopBetweenWrites(t testing.TB, p *os.Process, db *sql.DB) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.NoError(t, p.Signal(syscall.SIGSTOP))
		_, err := syscall.Wait4(p.Pid, nil, syscall.WUNTRACED, nil) // until all its threads stand
		require.NoError(t, err)
		if _, err := db.Exec(`BEGIN IMMEDIATE`); err == nil {
			do(t, db, `COMMIT`)
			return true
		}
		require.NoError(t, p.Signal(syscall.SIGCONT))
		return false
	}, time.Minute, 7*time.Millisecond)
}

// TestLongLockLosesNothing holds the write lock for seconds, in the
// middle of the stages of eight tasks. Store and engine are as they are by default.
func TestLongLockLosesNothing(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s, hasty := open(t, path, sqlite.Config{}), open(t, path, sqlite.Config{Busy: time.Second})
	makeTables(t, s)
	other := raw(t, path)
	locked := make(chan struct{})
	var processed atomic.Int64
	e, err := stage.New(patient(s, func(ctx context.Context, x *stage.Task) (stage.Commit, error) {
		processed.Add(1)
		<-locked
		return insertStep(ctx, x)
	}))
	require.NoError(t, err)
	for range 8 {
		_, err := e.Enqueue(t.Context(), "job", nil)
		require.NoError(t, err)
	}
	n, err := e.Fire(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, n)

	do(t, other, `BEGIN IMMEDIATE`)
	over := time.After(tier.Choose(3*time.Second, 3*time.Second, 10*time.Second))
	close(locked)
	_, err = hasty.Enqueue(t.Context(), stage.NewTask{Kind: "job", Stage: "NEW"})
	require.ErrorContains(t, err, "for 1s another process has been writing", "the error says why")
	<-over
	for _, x := range list(t, s) {
		require.Equal(t, "FIRST IN_PROCESSING", x.Stage+" "+string(x.Status), "reads do not wait")
	}
	do(t, other, `COMMIT`)

	require.NoError(t, e.Wait(t.Context()))
	for _, x := range settled(t, s) {
		require.Equal(t, "WHOLE", x.Stage)
		require.Equal(t, int64(1), x.Token)
	}
	require.Equal(t, 16, count(t, s.DB(), "step"))
	require.EqualValues(t, 16, processed.Load(), "nothing is computed twice")
}

// TestFullDiskLosesNothing lets the database grow no further while tasks are being worked on, for longer
// than a lease. What is computed is kept until it can be written, and that is no attempt.
func TestFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, newPath(t), sqlite.Config{})
	makeTables(t, s)
	large := strings.Repeat("x", 1<<20)
	var processed, refused atomic.Int64
	cfg := impatient(s, func(ctx context.Context, x *stage.Task) (stage.Commit, error) {
		processed.Add(1)
		return func(ctx context.Context, tx stage.Tx) error {
			_, err := sqlite.SQL(tx).Exec(insertion, x.ID, x.Stage+large)
			if err != nil {
				refused.Add(1)
			}
			return err
		}, nil
	})
	cfg.Lease *= 2 // beside TestStorm
	e, err := stage.New(cfg)
	require.NoError(t, err)
	for range 3 {
		_, err := e.Enqueue(t.Context(), "job", nil)
		require.NoError(t, err)
	}
	var pages int
	require.NoError(t, s.Writer().QueryRow(`PRAGMA page_count`).Scan(&pages))
	do(t, s.Writer(), `PRAGMA max_page_count = `+strconv.Itoa(pages+2))
	runs(t, e)
	time.Sleep(3 * cfg.Lease / 2)
	require.Greater(t, refused.Load(), int64(6), "each several times")
	require.Zero(t, count(t, s.DB(), "step"))
	for _, x := range list(t, s) {
		require.Equal(t, "FIRST IN_PROCESSING", x.Stage+" "+string(x.Status), x.Failure)
		require.Zero(t, x.Attempt)
		require.Empty(t, x.Failure)
	}
	do(t, s.Writer(), `PRAGMA max_page_count = 1000000`)
	for _, x := range settled(t, s) {
		require.Equal(t, "WHOLE", x.Stage, x.Failure)
		require.Equal(t, int64(1), x.Token)
	}
	require.Equal(t, 6, count(t, s.DB(), "step"))
	require.EqualValues(t, 6, processed.Load(), "nothing is computed twice")
	intact(t, s.DB())
}

const numberVariable = "DAIMON_SQLITE_NUMBER" // of the process in a storm

// stormy is a process with an engine that works until SIGTERM.
func stormy(path string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("SIGTERM ends it in order from now on")
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

// step writes to the table of makeTables.
func step(_ context.Context, tx stage.Tx, id stage.ID, at string) error {
	_, err := sqlite.SQL(tx).Exec(insertion, id, at)
	return err
}

// TestStorm has four processes work, and kills and stops them at random moments.
func TestStorm(t *testing.T) {
	tier.Need(t, tier.Full, "takes longer than several leases")
	t.Parallel()
	path := newPath(t)
	s := open(t, path, sqlite.Config{Relaxed: true, Counts: true, Busy: time.Minute}) // which the four make very busy
	makeTables(t, s)
	lock := raw(t, path)
	storm.Run(t, storm.Site{
		Store: s, DB: s.DB(), Steps: "step", Step: step,
		Worker: func(number int) *exec.Cmd {
			return childCommand(t, "storm", path, fmt.Sprint(numberVariable, "=", number))
		},
		Stop: func(t testing.TB, w *exec.Cmd) { stopBetweenWrites(t, w.Process, lock) },
	})
	intact(t, s.DB())
}
