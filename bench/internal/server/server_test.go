package server

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
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
	require.Eventually(t, func() bool { _, err := os.Stat(task); return os.IsNotExist(err) }, 5*time.Second, time.Millisecond)
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

func TestAServerThatDoesNotListenIsAnError(t *testing.T) {
	s := &Process{Name: "true", Program: "true"}
	require.ErrorContains(t, s.Start(t.Context(), 1), "true does not listen")
}
