package server

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/bench/internal/build"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCPUCountsThreadsThatHaveEnded(t *testing.T) {
	const work = 20 * time.Millisecond
	self := &Process{PID: os.Getpid()}
	before, err := self.CPU()
	require.NoError(t, err)
	thread := make(chan int, 1)
	go onAThreadThatEnds(func() {
		for start := threadCPU(); threadCPU()-start < work; {
		}
		thread <- unix.Gettid()
	})
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	require.Eventually(t, func() bool { _, err := os.Stat(task); return os.IsNotExist(err) }, time.Minute, time.Millisecond)
	after, err := self.CPU()
	require.NoError(t, err)
	require.GreaterOrEqual(t, after-before, work)
}

// onAThreadThatEnds runs f on a thread that the runtime ends with the goroutine, as it does with locked
// ones. The process's main thread is the exception, it stays: held here, it cannot be chosen again.
func onAThreadThatEnds(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		onAThreadThatEnds(f)
	}()
	<-ended
}

func threadCPU() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

func TestCPUOfAProcessThatIsGoneIsAnError(t *testing.T) {
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	_, err := (&Process{Name: "true", PID: cmd.Process.Pid}).CPU()
	require.ErrorContains(t, err, "true has ended")
}

func TestCPUCountsWorkers(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done & wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	defer func() {
		require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
		_ = cmd.Wait()
	}()
	s := &Process{PID: cmd.Process.Pid}
	require.Eventually(t, func() bool {
		used, err := s.CPU()
		return err == nil && used > 200*time.Millisecond // of which the shell, which waits, needs 2
	}, time.Minute, 10*time.Millisecond)
}

func TestMemoryIsSeenToGrow(t *testing.T) {
	const size = 64 << 20
	self := &Process{PID: os.Getpid()}
	before, err := self.Memory()
	require.NoError(t, err)
	big, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	require.NoError(t, err)
	after, err := self.Memory()
	require.NoError(t, err)
	require.NoError(t, unix.Munmap(big))
	require.InDelta(t, size, after-before, size/8)
	_, err = (&Process{Name: "nobody", PID: 1 << 30}).Memory()
	require.ErrorContains(t, err, "memory of nobody: ")
}

func TestAServerWithoutItsWorkersIsAnError(t *testing.T) {
	t.Parallel()
	b, err := build.Into(t.TempDir())
	require.NoError(t, err)
	s := &Process{Name: "lonely", Reactors: 1, Workers: 2, patience: 5 * time.Second}
	s.Program, err = b.Go("echo/plain")
	require.NoError(t, err)
	require.EqualError(t, s.Start(t.Context()), "lonely runs 0 processes beside itself, not 2")
}

func TestStartAllEndsWhatRunsAlsoAfterAnError(t *testing.T) {
	t.Parallel()
	b, err := build.Into(t.TempDir())
	require.NoError(t, err)
	plain, err := b.Go("echo/plain")
	require.NoError(t, err)
	good := &Process{Name: "good", Program: plain}
	stop, err := StartAll(t.Context(), []*Process{good, {Name: "none", Program: "/nowhere"}})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = good.CPU()
	require.NoError(t, err)
	stop()
	_, err = good.CPU()
	require.Error(t, err)
}

func TestAServerThatDoesNotListenIsAnError(t *testing.T) {
	t.Parallel()
	s := &Process{Name: "true", Program: "true"}
	require.ErrorContains(t, s.Start(t.Context()), "true does not listen")
}

// What was broken: clients of a further address came before it listened.
func TestStartWaitsForEachAddress(t *testing.T) {
	t.Parallel()
	b, err := build.Into(t.TempDir())
	require.NoError(t, err)
	web, free, err := Reserve()
	require.NoError(t, err)
	defer free()
	s := &Process{Name: "half", Reactors: 1, Further: []string{web.String()}, patience: 5 * time.Second}
	s.Program, err = b.Go("echo/plain")
	require.NoError(t, err)
	require.ErrorContains(t, s.Start(t.Context()), "half does not listen: dial tcp "+web.String())
}
