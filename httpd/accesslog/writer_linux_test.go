package accesslog

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 2 * time.Minute

// keep is a Log on a scheduler of its own.
func keep(t *testing.T, path string) (l *Log, s *act.Scheduler, logs *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	s = act.New(act.Config{Logger: zap.New(core)})
	t.Cleanup(func() { _ = s.Close() })
	l = &Log{Path: path}
	require.NoError(t, l.Setup(s))
	return l, s, logs
}

// put adds a line as a server does, and hands it to the writer.
func put(l *Log, s *act.Scheduler, line string) {
	b := l.books.Get(s)
	b.lines.text = append(append(b.lines.text, line...), '\n')
	b.lines.lines++
	b.Expire()
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, patience, time.Millisecond, what)
}

func TestLinesOfEachSchedulerAreInOrder(t *testing.T) {
	const n = 2000
	l := &Log{Path: filepath.Join(t.TempDir(), "access.log")}
	err := act.Run(context.Background(), act.Config{Schedulers: 3}, l.Setup, func(s *act.Scheduler) error {
		i := 0
		s.Spawn(act.Func(func(*act.Task) act.Directive {
			if i == n {
				return act.Done
			}
			put(l, s, fmt.Sprintf("%d %d", s.Index(), i))
			i++
			return act.Yield
		}))
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, l.lost.Load())
	var next [3]int
	for line := range strings.Lines(read(t, l.Path)) {
		var s, i int
		_, err := fmt.Sscanf(line, "%d %d\n", &s, &i)
		require.NoError(t, err)
		require.Equal(t, next[s], i)
		next[s]++
	}
	require.Equal(t, [3]int{n, n, n}, next)
}

// A reader that has stopped costs lines and no time. When it goes on, what was lost is reported once.
func TestLinesForAWriterThatIsBlockedAreLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer pipe.Close()
	l, s, logs := keep(t, path)
	const n = 5000
	filler := strings.Repeat("x", 1000)
	for i := range n {
		put(l, s, fmt.Sprintf("%06d %s", i, filler))
		if i == 200 { // more than fits into the pipe, and less than would be lost
			eventually(t, "a full pipe", func() bool { return full(t, pipe) })
		}
	}
	lost := int(l.lost.Load())
	const most = (mostBehind + 64<<10 + handAt) / 1000 // in the pipe, on the way, and behind
	require.GreaterOrEqual(t, lost, n-2*most)
	require.Zero(t, logs.Len())

	in, last := bufio.NewReader(pipe), -1
	for range n - lost {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		var i int
		_, err = fmt.Sscanf(line, "%d "+filler+"\n", &i)
		require.NoError(t, err)
		require.Greater(t, i, last)
		last = i
	}
	eventually(t, "a report", func() bool { return logs.Len() == 1 })
	require.Equal(t, "lines of the access log are lost", logs.All()[0].Message)
	require.EqualValues(t, lost, logs.All()[0].ContextMap()["lines"])
	put(l, s, "on")
	line, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "on\n", line)
}

// full reports whether a pipe takes no more bytes, so that the writer of some is blocked.
func full(t *testing.T, pipe *os.File) (yes bool) {
	c, err := pipe.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, c.Control(func(fd uintptr) {
		look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		_, err := unix.Poll(look, 0)
		yes = err == nil && look[0].Revents&unix.POLLOUT == 0
	}))
	return yes
}

func TestTheEndDoesNotWaitForABlockedWriter(t *testing.T) {
	t.Parallel() // it waits for a second
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	l, s, logs := keep(t, path)
	put(l, s, strings.Repeat("x", 1<<20))
	require.NoError(t, s.Close())
	require.Equal(t, 1, logs.FilterMessage("the last lines of the access log cannot be written within 1s").Len())
	require.NoError(t, l.Reopen(), "it does nothing after the end")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = bufio.NewReader(pipe).ReadString('\n') // so that the goroutine ends
	}()
	<-done
	require.NoError(t, pipe.Close())
}

func TestAFullDiskLosesLines(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	l, s, logs := keep(t, "/dev/full")
	put(l, s, "one")
	eventually(t, "a report", func() bool { return logs.Len() == 1 })
	require.Equal(t, "write /dev/full: no space left on device", logs.All()[0].ContextMap()["error"])
	put(l, s, "two\nthree")
	put(l, s, "four")
	require.NoError(t, s.Close())
	require.EqualValues(t, 4, l.lost.Load())
	require.Equal(t, 2, logs.Len(), "the second one at the end")
	require.EqualValues(t, 3, logs.All()[1].ContextMap()["lines"])
}

// What is missing of a line that was written in part comes before the next line.
func TestALineThatWasWrittenInPartIsFinished(t *testing.T) {
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	l, s, _ := keep(t, filepath.Join(t.TempDir(), "unused"))
	l.writer.next.Store(in)
	line := strings.Repeat("x", 999)
	many := strings.Repeat(line+"\n", 200)
	put(l, s, many[:len(many)-1])
	eventually(t, "a full pipe", func() bool {
		raw, err := out.SyscallConn()
		require.NoError(t, err)
		n := 0
		require.NoError(t, raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
		return err == nil && n == 64<<10
	})
	require.NoError(t, in.SetWriteDeadline(time.Unix(1, 0)))
	eventually(t, "an error", func() bool { return l.lost.Load() > 0 })
	require.NoError(t, in.SetWriteDeadline(time.Time{}))
	lines := bufio.NewScanner(out)
	for range 65 {
		require.True(t, lines.Scan())
		require.Equal(t, line, lines.Text())
	}
	put(l, s, "behind")
	require.True(t, lines.Scan())
	require.Equal(t, line, lines.Text())
	require.True(t, lines.Scan())
	require.Equal(t, "behind", lines.Text())
	require.EqualValues(t, 200-66, l.lost.Load())
}

func TestHangupOpensTheFileAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "access.log")
	require.NoError(t, os.WriteFile(path, []byte("zero\n"), 0o600))
	l, s, logs := keep(t, path)
	hangup := func(says string) {
		t.Helper()
		before := logs.Len()
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		eventually(t, says, func() bool { return logs.Len() > before })
		require.Equal(t, says, logs.All()[before].Message)
	}
	written := func(path, line string) {
		t.Helper()
		put(l, s, line)
		eventually(t, line, func() bool { return strings.HasSuffix(read(t, path), line+"\n") })
	}
	written(path, "one")
	require.NoError(t, os.Rename(path, path+".1"))
	written(path+".1", "two")
	hangup("opened the access log " + path + " again")
	written(path, "three")
	require.Equal(t, "zero\none\ntwo\n", read(t, path+".1"))

	require.NoError(t, os.Rename(dir, dir+".1"))
	hangup("the access log stays as it was")
	require.Contains(t, logs.All()[1].ContextMap()["error"], "cannot open the access log: open "+path)
	written(filepath.Join(dir+".1", "access.log"), "four")
	require.NoError(t, s.Close())
	require.Equal(t, "three\nfour\n", read(t, filepath.Join(dir+".1", "access.log")))
}

// To open a pipe would wait for its reader.
func TestAFileThatCannotBeOpenedFailsTheSetup(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	s := act.New(act.Config{})
	defer s.Close()
	require.ErrorIs(t, (&Log{Path: pipe}).Setup(s), syscall.ENXIO)
	require.ErrorIs(t, (&Log{Path: filepath.Join(pipe+"s", "access.log")}).Setup(s), os.ErrNotExist)
	require.PanicsWithValue(t, missing, func() { (&Log{}).OnResponse()(nil, nil) }, "without Setup")
}
