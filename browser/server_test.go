package browser

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is what is waited for something before it is called stuck.
const patience = 20 * time.Second

// compile compiles examples/httpd as a user does, by the library's own go.mod, into the directory to: with the race
// detector, if the tests have it.
func compile(to string) (program string, err error) {
	program = filepath.Join(to, "httpd")
	flags := []string{"build", "-buildvcs=false", "-o", program}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		flags = append(flags, "-race")
	}
	cmd := exec.Command("go", append(flags, "./examples/httpd")...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return program, nil
}

// A server is examples/httpd that runs.
type server struct {
	addr  string
	cmd   *exec.Cmd
	said  log
	ended chan struct{}
}

// serve starts the server on a free port of the loopback, with the files of root under /files/, and returns when it
// listens. No server, whatever it went through, may have panicked or raced or failed a request, and none is left behind.
func serve(t *testing.T, root string, flags ...string) *server {
	t.Helper()
	s := &server{ended: make(chan struct{})}
	s.cmd = exec.Command(program, append([]string{"-addr", "127.0.0.1:0", "-root", root}, flags...)...)
	// By default the race detector lets a program sleep for a second at its end.
	s.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	s.cmd.Stderr = &s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also if go test kills the test
	require.NoError(t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait() // ProcessState has the verdict
		close(s.ended)
	}()
	t.Cleanup(func() { s.bury(t) })
	listening := regexp.MustCompile(`listening on (\S+)`)
	eventually(t, "the line that tells the address", func() bool { return s.gone() || listening.MatchString(s.said.String()) })
	found := listening.FindStringSubmatch(s.said.String())
	require.NotNil(t, found, "it ended before it listened: %s", &s.said)
	s.addr = found[1]
	return s
}

func (s *server) bury(t *testing.T) {
	if !s.gone() {
		_ = s.cmd.Process.Kill()
	}
	<-s.ended
	if t.Failed() {
		t.Logf("%s said:\n%s", s.cmd, &s.said)
	}
	require.NotRegexp(t, `(?i)\bpanic|fatal error|DATA RACE|goroutine \d+ \[|failed`, s.said.String())
}

func (s *server) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// url is that of a path.
func (s *server) url(path string) string { return "http://" + s.addr + path }

// terminate has the server end in an orderly way.
func (s *server) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
}

// ends waits for the end of the server, which has to be orderly and to come in time.
func (s *server) ends(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(within):
		require.FailNow(t, "the server goes on", "%v after it should have ended", within)
	}
	require.Equal(t, "exit status 0", s.cmd.ProcessState.String())
	require.Contains(t, s.said.String(), "ended in order")
}

// holds counts the server's descriptors of a file.
func (s *server) holds(t *testing.T, path string) (n int) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/fd"
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, fd := range all {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == path {
			n++
		}
	}
	return n
}

// eventually waits until f holds.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited %v in vain for %s", patience, what)
	}
}

// log is a buffer for two goroutines.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
