package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/process"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// recordedFile waits for the file number n of a log, and returns its text.
func recordedFile(t *testing.T, logs *observer.ObservedLogs, n int) string {
	t.Helper()
	var lines []observer.LoggedEntry
	require.Eventually(t, func() bool {
		lines = logs.FilterMessage("the last events are in a file").All()
		return len(lines) >= n
	}, servertest.Timeout, time.Millisecond)
	text, err := os.ReadFile(lines[n-1].ContextMap()["file"].(string))
	require.NoError(t, err)
	return string(text)
}

func TestAPanicAStallAndASignalWriteAFileEach(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	x := &Inspector{Dir: t.TempDir()}
	runs(t, x, act.Config{Schedulers: 2, Logger: zap.New(core)})
	on := func(f act.Func) {
		require.NoError(t, x.desks[1].probe.s.Post(func(s *act.Scheduler) { s.Spawn(f) }))
	}
	const here = "github.com/daimon-go/daimon/inspect.TestAPanicAStallAndASignalWriteAFileEach"

	on(func(*act.Task) act.Directive { panic("the password") })
	text := recordedFile(t, logs, 1)
	require.Contains(t, text, ": task 3 of scheduler 1, "+here)
	require.Contains(t, text, ", has panicked.\n")
	require.Contains(t, text, "recorder_test.go:", "the stack")
	require.NotContains(t, text, "password", "it may be of a user")
	require.Contains(t, text, "2 schedulers, 2 tasks")
	require.Contains(t, text, "\nScheduler 0, ")
	_, events, found := strings.Cut(text, "\nScheduler 1, then\n")
	require.True(t, found)
	lines := strings.Split(strings.TrimSpace(events), "\n")
	require.Regexp(t, `^\S+ +turn +1 +panicked +`+here+`\S+ +3$`, lines[len(lines)-1], "nothing that came later")

	free := make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	on(func(*act.Task) act.Directive {
		<-free
		return act.Done
	})
	text = recordedFile(t, logs, 2)
	require.Contains(t, text, ": a turn holds up scheduler 1.\n")
	require.Regexp(t, `, for \S+ so far\.\n`, text)
	require.Regexp(t, `\n1 +.* in a turn of `+here, text)
	_, events, found = strings.Cut(text, "\nScheduler 1, ")
	require.True(t, found)
	require.Regexp(t, `^in a turn of `+here+`[\s\S]* turn +1 +has not ended +`+here+`\S+ +3\n$`, events)
	line := logs.FilterMessage("a turn holds up its scheduler").All()[0].ContextMap()
	require.Equal(t, line["file"], x.report(false, false).Stalls.Last[0].File)
	require.FileExists(t, line["file"].(string))
	release()

	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	text = recordedFile(t, logs, 3)
	require.Contains(t, text, ": the signal user defined signal 1.\n")
	require.Contains(t, text, "2 written, 0 suppressed, 0 failed")
	require.Contains(t, text, "\nScheduler 1, ")
	files, err := os.ReadDir(x.Dir)
	require.NoError(t, err)
	require.Len(t, files, 3)
	for i, reason := range []string{"panic", "stall", "signal"} {
		require.Regexp(t, fmt.Sprintf(`^inspect-\d{8}T\d{6}Z-%d-00%d-%s\.txt$`, os.Getpid(), i+1, reason), files[i].Name())
	}
}

// Also a panic that fails no task; a failure has no file.
func TestEachPanicWritesAFile(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	x := &Inspector{Dir: t.TempDir()}
	system := process.New()
	t.Cleanup(startRun(t, x, act.Config{Schedulers: 1, Logger: zap.New(core)}, system.Setup))
	s := x.desks[0].probe.s
	fragile := process.Handler[int](func(*process.Self[int], int) { panic("the password") })
	for i, row := range []struct {
		says  string
		panic func() error
	}{
		{`: task \d of scheduler 0, [\s\S]*panicked +1 +\S+ +\d\n$`, func() error {
			return s.Post(func(s *act.Scheduler) {
				s.Spawn(act.Func(func(t *act.Task) act.Directive { return t.Fail(errors.New("no")) }))
				s.Spawn(act.Func(func(t *act.Task) act.Directive { return t.Offload(func() { panic("the password") }) }))
			})
		}},
		{`: a posted function of scheduler 0 has panicked\.\n[\s\S]*TestEachPanicWritesAFile\.func[\s\S]*\nScheduler 0, then\n`, func() error {
			return s.Post(func(*act.Scheduler) { panic("the password") })
		}},
		{`: a process of scheduler 0 has panicked\.\n`, func() error {
			return process.Spawn(system, fragile, process.Options{}).Send(system, 1)
		}},
	} {
		require.NoError(t, row.panic())
		text := recordedFile(t, logs, i+1)
		require.Regexp(t, row.says, text)
		require.NotContains(t, text, "password")
		require.EqualValues(t, i+1, x.recorder.recordings().Written)
	}
}

// recordingAlone returns a recorder of an Inspector without schedulers, and the log.
func recordingAlone(t *testing.T) (*recorder, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	r := newRecorder(&Inspector{Dir: t.TempDir()}, zap.New(core))
	t.Cleanup(r.close)
	return r, logs
}

// A Group that has run still receives signals, until it is closed.
func TestASignalAfterCloseDoesNotEndTheProcess(t *testing.T) {
	r, _ := recordingAlone(t)
	r.close()
	require.NotPanics(t, func() { r.Signal(syscall.SIGUSR1) })
	require.Equal(t, recordings{}, r.recordings())
}

func TestTheOldestFilesAreRemoved(t *testing.T) {
	r, _ := recordingAlone(t)
	r.refill = 0
	var before []string
	for i := range filesKept + 3 {
		name := fmt.Sprintf("inspect-2025%04dT000000Z-1-001-panic.txt", i)
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), nil, 0o600))
		before = append(before, name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "another.txt"), nil, 0o600))
	rec := r.ask(aSignal, func(*recording) {})
	<-rec.done
	entries, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, append(append([]string{"another.txt"}, before[4:]...), filepath.Base(rec.path)), names)
}

func TestADirectoryThatIsMissingIsOneLineInTheLog(t *testing.T) {
	r, logs := recordingAlone(t)
	ask := func() {
		r.underway[aSignal].Store(0)
		<-r.ask(aSignal, func(*recording) {}).done
	}
	require.NoError(t, os.Remove(r.dir))
	for range 2 {
		ask()
	}
	lines := logs.TakeAll()
	require.Len(t, lines, 1)
	require.Equal(t, "the last events could not be written to a file", lines[0].Message)
	require.Contains(t, lines[0].ContextMap()["error"], r.dir)
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	ask()
	require.Len(t, logs.FilterMessage("the last events are in a file").All(), 1)
	require.Equal(t, recordings{Written: 1, Failed: 2}, r.recordings())

	core, logs := observer.New(zap.InfoLevel)
	newRecorder(&Inspector{Dir: r.dir + "/missing"}, zap.New(core)).close()
	require.Equal(t, "no files will be written with the last events", logs.All()[0].Message, "at the start")
}

func TestAFullDiskLeavesNoPartOfAFile(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("only Linux and FreeBSD have /dev/full")
	}
	r, logs := recordingAlone(t)
	r.create = func(path string) (io.WriteCloser, error) {
		require.NoError(t, os.WriteFile(path, []byte("a part"), 0o600))
		return os.OpenFile("/dev/full", os.O_WRONLY, 0)
	}
	<-r.ask(aStall, func(*recording) {}).done
	require.Contains(t, logs.All()[0].ContextMap()["error"], "no space left on device")
	files, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

// While a disk does not answer, schedulers go on, and so does the watchdog.
func TestNobodyWaitsForADisk(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	x := &Inspector{Dir: t.TempDir()}
	answer := make(chan struct{})
	cfg := act.Config{Logger: zap.New(core)}
	x.Configure(&cfg)
	s := act.New(cfg)
	require.NoError(t, x.Setup(s))
	x.recorder.patience = 10 * time.Millisecond
	x.recorder.create = func(string) (io.WriteCloser, error) {
		<-answer
		return nil, errors.New("too late")
	}
	for range 2 * filesAtOnce {
		s.Spawn(act.Func(func(*act.Task) act.Directive { panic("no") }))
	}
	s.Spawn(&waiter{what: "the end"})
	_, err := s.Step(100)
	require.NoError(t, err)
	require.EqualValues(t, 2*filesAtOnce, x.desks[0].probe.failed, "all have had their turns")
	require.EqualValues(t, filesAtOnce, x.recorder.suppressed.Load())
	x.recorder.Signal(syscall.SIGUSR1)
	require.NotEmpty(t, x.recorder.stall(&stall{}))
	require.Error(t, s.Close(), "a task is left")
	require.NoError(t, x.Close())
	require.Len(t, logs.FilterMessage("a file with the last events could not be finished").All(), 1)
	close(answer)
	<-x.recorder.ended
}

const crashVariable = "INSPECT_TEST_CRASH"

// crash is a process that a panic ends.
func crash(dir string) {
	x := &Inspector{Dir: dir}
	cfg := act.Config{Crash: true, Schedulers: 2, Logger: zap.NewNop()}
	x.Configure(&cfg)
	_ = act.Run(context.Background(), cfg, x.Setup, func(s *act.Scheduler) error {
		if s.Index() == 1 {
			s.Spawn(act.Func(func(*act.Task) act.Directive { panic("the end of the process") }))
		}
		return nil
	})
	os.Exit(0) // not reached
}

func TestAPanicThatEndsTheProcessWritesAFileBefore(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crashVariable+"="+dir, "GORACE=atexit_sleep_ms=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.Error(t, cmd.Run())
	require.Contains(t, out.String(), "panic: the end of the process")
	files, err := filepath.Glob(dir + "/inspect-*-panic.txt")
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "of scheduler 1, ")
	require.Contains(t, string(text), "inspect.crash.func")
	require.Contains(t, string(text), "recorder_test.go:", "the stack of the panic")
	_, events, _ := strings.Cut(string(text), "\nScheduler 1, then\n")
	require.Regexp(t, `turn +1 +has not ended +\S*inspect.crash\S+ +\d\n$`, events)
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashVariable); dir != "" {
		crash(dir)
	}
	goleak.VerifyTestMain(m)
}
