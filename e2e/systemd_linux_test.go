package e2e

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
)

// unit returns the settings of a file in examples/graceful/systemd.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../examples/graceful/systemd/" + name)
	require.NoError(t, err)
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found && !strings.HasPrefix(key, "#") {
			all[key] = value
		}
	}
	return all
}

// message is one of sd_notify(3), and the process that has sent it.
type message struct {
	pid    int
	fields map[string]string
}

// systemd is what systemd is for a service of Type=notify-reload and NotifyAccess=all.
type systemd struct {
	*testing.T
	heard chan message
	ended int            // the process that was stopped last
	named map[int]string // by process: which one it has called the main process
}

// newSystemd is heard by the programs that the test starts.
func newSystemd(t *testing.T, watchdog time.Duration) *systemd {
	t.Helper()
	name := "@daimon-" + rand.Text() // an abstract address
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	require.NoError(t, err)
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	}))
	require.NoError(t, err)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	s := &systemd{T: t, heard: make(chan message, 10_000), named: map[int]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.listen(conn)
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return s
}

func (s *systemd) listen(conn *net.UnixConn) {
	text, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	for {
		n, c, _, _, err := conn.ReadMsgUnix(text, control)
		if err != nil {
			return
		}
		m := message{fields: map[string]string{}}
		if parts, err := unix.ParseSocketControlMessage(control[:c]); err == nil && len(parts) == 1 {
			if sender, err := unix.ParseUnixCredentials(&parts[0]); err == nil {
				m.pid = int(sender.Pid)
			}
		}
		for line := range strings.Lines(string(text[:n])) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			m.fields[key] = value
		}
		s.heard <- m
	}
}

// next returns the next message.
func (s *systemd) next() (m message) {
	s.Helper()
	select {
	case m = <-s.heard:
	case <-time.After(patience):
		require.FailNow(s, "the program says nothing")
	}
	if main, ok := m.fields["MAINPID"]; ok {
		s.named[m.pid] = main
	}
	return m
}

// word returns the next message that is not a sign of life, and requires that process pid has sent it. The process that
// it has replaced may say meanwhile that pid is the main process.
func (s *systemd) word(pid int) map[string]string {
	s.Helper()
	m := s.next()
	for m.fields["WATCHDOG"] == "1" || m.pid == s.ended || m.pid != pid && m.names(pid) {
		m = s.next()
	}
	require.Equal(s, pid, m.pid, "%v", m.fields)
	return m.fields
}

// names reports whether m says that process pid is the main process, and nothing else.
func (m message) names(pid int) bool {
	return len(m.fields) == 1 && m.fields["MAINPID"] == strconv.Itoa(pid)
}

// replacesIdle is an upgrade without clients, so the old process ends at once. It has to name the new one before,
// whatever that one says and when: systemd takes the end of the main process for that of the service.
func (s *systemd) replacesIdle(u *upgraded) {
	s.Helper()
	old := u.pid
	u.upgrade(s.T)
	exectest.Eventually(s, patience, "the end of the old process", func() bool { return errors.Is(syscall.Kill(old, 0), syscall.ESRCH) })
	s.ready(u.pid)
	s.reload(u.pid) // the answer comes behind all that the old process has said
	require.Equal(s, strconv.Itoa(u.pid), s.named[old])
}

// ready hears that process pid is ready, and is the main process.
func (s *systemd) ready(pid int) {
	s.Helper()
	m := s.word(pid)
	require.Equal(s, "1", m["READY"])
	require.Equal(s, strconv.Itoa(pid), m["MAINPID"])
}

// lives waits for signs of life of process pid. The process that it has replaced may have sent some before.
func (s *systemd) lives(pid int) {
	s.Helper()
	for n := 0; n < 3; {
		if m := s.next(); m.fields["WATCHDOG"] == "1" && m.pid == pid {
			n++
		}
	}
}

// reload is "systemctl reload".
func (s *systemd) reload(pid int) {
	s.Helper()
	var now unix.Timespec
	require.NoError(s, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	require.NoError(s, syscall.Kill(pid, syscall.SIGHUP))
	m := s.word(pid)
	require.Equal(s, "1", m["RELOADING"])
	at, err := strconv.ParseInt(m["MONOTONIC_USEC"], 10, 64)
	require.NoError(s, err)
	require.GreaterOrEqual(s, at, now.Nano()/1000, "systemd takes it for an answer to an earlier signal")
	m = s.word(pid)
	require.Equal(s, "1", m["READY"])
	require.NotContains(s, m, "MAINPID")
}

// stop is "systemctl stop": it returns when the program has ended. While a client still reads, the program asks for more time.
func (s *systemd) stop(u *upgraded) {
	s.Helper()
	answer := request(s.T, u.Addr, "/stream?lines=1000000")
	_, err := answer.ReadString('\n')
	require.NoError(s, err)
	require.NoError(s, syscall.Kill(u.pid, syscall.SIGTERM))
	m := s.word(u.pid)
	require.Equal(s, "1", m["STOPPING"])
	require.NotEmpty(s, m["EXTEND_TIMEOUT_USEC"])
	_, err = answer.ReadString('\n')
	require.NoError(s, err)
	require.NoError(s, answer.Close())
	exectest.Eventually(s, patience, "the end", func() bool { return errors.Is(syscall.Kill(u.pid, 0), syscall.ESRCH) })
	s.ended = u.pid
}

// A page is an answer that is read piece by piece.
type page struct {
	*bufio.Reader
	io.Closer
}

// request asks for a page on a connection of its own.
func request(t *testing.T, addr, path string) page {
	t.Helper()
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + addr + path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return page{bufio.NewReader(answer.Body), answer.Body}
}

// The example runs by its unit files, under constant load: no client sees a failure from the first start to the last end. The
// socket is systemd's, so clients that come during a restart wait.
func TestUnderSystemd(t *testing.T) {
	outside(t)
	service, socket := unit(t, "graceful.service"), unit(t, "graceful.socket")
	require.Equal(t, "notify-reload", service["Type"])
	require.Equal(t, "all", service["NotifyAccess"])
	file := filepath.Join(folder(t), "text")
	require.NoError(t, os.WriteFile(file, []byte("text 0\n"), 0o600))
	arguments := strings.Fields(strings.Replace(service["ExecStart"], "/etc/graceful/text", file, 1))
	require.Equal(t, "/usr/local/bin/graceful", arguments[0])
	arguments = append(arguments[1:], "-announce", "500ms", "-reactors", "2")

	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer l.Close()
	s := newSystemd(t, 500*time.Millisecond)
	start := func() *upgraded {
		u := activated(t, l, socket["FileDescriptorName"], arguments...)
		s.ready(u.pid)
		return u
	}
	u := start()
	s.replacesIdle(u)
	load := u.load()
	end := load.Start(append(staying("/", "/slow?for=500ms", "/stream?lines=10", "/ws"),
		fresh("/", "/slow?for=100ms", "/stream?lines=10")...)...)
	for n := range tier.Choose(0, 3, 20) {
		awaitAnswers(t, load, 50)
		text := fmt.Sprintf("text %d\n", n+1)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		s.reload(u.pid)
		answer := request(t, u.Addr, "/")
		body, err := io.ReadAll(answer)
		require.NoError(t, err)
		require.Contains(t, string(body), text)

		u.script(t, []string{"exit 3", "echo ready >&4; exit 0", `exec $program "$@" -reactors -7`}[n%3])
		require.Contains(t, u.fails(t), "it has ended: exit status")
		u.with(t, "")
		u.upgrade(t)
		s.ready(u.pid)
		if n < tier.Choose(0, 2, 20) { // they take their time
			s.lives(u.pid)
		}
	}
	s.stop(u)
	start()
	awaitAnswers(t, load, 100)
	end()
	require.Empty(t, load.Failures())
	t.Logf("%d requests on %d connections", load.Served(), load.Connections())
}

// systemd kills what has not ended in TimeoutStopSec.
func TestTheUnitsTimeIsLongerThanTheDrain(t *testing.T) {
	service := unit(t, "graceful.service")
	stop, err := time.ParseDuration(service["TimeoutStopSec"])
	require.NoError(t, err)
	_, text, found := strings.Cut(service["ExecStart"], "-drain ")
	require.True(t, found)
	text, _, _ = strings.Cut(text, " ")
	drain, err := time.ParseDuration(text)
	require.NoError(t, err)
	require.Greater(t, stop, drain+5*time.Second)
}
