package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/exectest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/internal/testing/traffic"
)

// upgraded is a server whose process changes. Its processes write to one log.
type upgraded struct {
	*exectest.Program // the first process
	pid               int
	log, binary       string
	tls               bool
}

// upgradable starts examples/graceful. Its binary is a copy, which a test can replace.
func upgradable(t *testing.T, flags ...string) *upgraded {
	t.Helper()
	return startUpgradable(t, func(binary string) *exec.Cmd {
		return exec.Command(binary, append([]string{"-addr", "127.0.0.1:0"}, flags...)...)
	})
}

// startUpgradable starts the copy by a command of the caller's.
func startUpgradable(t *testing.T, command func(binary string) *exec.Cmd) *upgraded {
	t.Helper()
	dir := folder(t)
	u := &upgraded{log: filepath.Join(dir, "log"), binary: filepath.Join(dir, "graceful")}
	u.install(t, example("graceful").Path(t))
	out, err := os.Create(u.log)
	require.NoError(t, err)
	defer out.Close()
	cmd := command(u.binary)
	cmd.Args = append(cmd.Args, exectest.Flags()...)
	cmd.Stderr = out
	u.Program = exectest.Start(t, cmd)
	u.pid = u.Pid
	u.Listens(t, u.said)
	u.watch(t)
	return u
}

// watch ends the last process with the test, and fails the test if one has panicked or raced.
func (u *upgraded) watch(t *testing.T) {
	t.Cleanup(func() {
		if u.pid > 1 { // 0 would be the group of this process
			_ = syscall.Kill(u.pid, syscall.SIGKILL)
		}
		if t.Failed() {
			t.Log(u.said())
		}
		require.NotRegexp(t, `(?i)\bpanic|fatal error|DATA RACE|goroutine \d+ \[`, u.said())
	})
}

// install puts a program in the place of the binary.
func (u *upgraded) install(t *testing.T, program string) {
	t.Helper()
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	u.replace(t, content)
}

// replace has a new file in the place of the binary, as install(1) does. Meanwhile no other test starts a process: that would
// have the file open for writing until its own exec, so that the file could not be executed (ETXTBSY, go.dev/issue/22315).
func (u *upgraded) replace(t *testing.T, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(u.binary+"~", content, 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	require.NoError(t, os.Rename(u.binary+"~", u.binary))
}

// said returns the lines of the log. Its last one may be there in part only: a file grows page by page while a line is
// written.
func (u *upgraded) said() string {
	text, _ := os.ReadFile(u.log)
	return string(text[:bytes.LastIndexByte(text, '\n')+1])
}

var replacedBy = regexp.MustCompile(`replaced\s+\{"by process": (\d+)\}`)

// upgrade replaces the process, and waits until the new one serves.
func (u *upgraded) upgrade(t *testing.T) {
	t.Helper()
	before := len(replacedBy.FindAllString(u.said(), -1))
	require.NoError(t, syscall.Kill(u.pid, syscall.SIGUSR2))
	var found [][]string
	exectest.Eventually(t, patience, "the word that it is replaced", func() bool {
		found = replacedBy.FindAllStringSubmatch(u.said(), -1)
		return len(found) > before
	})
	pid, err := strconv.Atoi(found[len(found)-1][1])
	require.NoError(t, err)
	u.pid = pid
}

// fails sends the signal for an upgrade that is to fail, and returns why.
func (u *upgraded) fails(t *testing.T) string {
	t.Helper()
	const line = "this program was not replaced"
	before := strings.Count(u.said(), line)
	require.NoError(t, syscall.Kill(u.pid, syscall.SIGUSR2))
	exectest.Eventually(t, patience, "the word that it is not replaced", func() bool { return strings.Count(u.said(), line) > before })
	said := u.said()
	said = said[strings.LastIndex(said, line):]
	said, _, _ = strings.Cut(said, "\n")
	return said
}

// load is for clients of the server.
func (u *upgraded) load() *traffic.Load {
	l := &traffic.Load{Addr: u.Addr}
	if u.tls {
		l.TLS = &tls.Config{InsecureSkipVerify: true}
	}
	return l
}

// staying are clients that stay on their connections until the server closes them. The path /ws is an echo of WebSocket.
func staying(paths ...string) (all []traffic.Client) {
	for _, path := range paths {
		all = append(all, traffic.Client{Path: path, WebSocket: path == "/ws"})
	}
	return all
}

// fresh are clients that send each request on a connection of its own.
func fresh(paths ...string) (all []traffic.Client) {
	for _, path := range paths {
		all = append(all, traffic.Client{Path: path, Fresh: true})
	}
	return all
}

// resting are clients that stay on their connections, and ask for / now and then.
func resting(n int) []traffic.Client {
	return slices.Repeat([]traffic.Client{{Path: "/", Rest: 300 * time.Millisecond}}, n)
}

// multiplexed are clients of HTTP/2, each with four requests at a time on a connection.
func multiplexed(paths ...string) (all []traffic.Client) {
	for _, path := range paths {
		all = append(all, traffic.Client{Path: path, Streams: 4})
	}
	return all
}

// awaitAnswers waits until n more requests are answered.
func awaitAnswers(t *testing.T, l *traffic.Load, n int64) {
	t.Helper()
	served := l.Served()
	exectest.Eventually(t, patience, "requests", func() bool { return l.Served() > served+n })
}

// everybody has clients of all kinds.
func everybody() []traffic.Client {
	return slices.Concat(
		staying("/", "/", "/slow?for=100ms", "/stream?lines=10", "/ws", "/ws"),
		fresh("/", "/", "/slow?for=100ms", "/stream?lines=10"),
		resting(4))
}

// While clients of all kinds keep coming, every second new binary fails, each in another way. No client sees a failure.
// A new program is started by a thread that is not bound to a CPU, and finds as many of them as the first one, even
// with more or fewer schedulers. With as many, the last one has as many descriptors. Clients of HTTP/2 are never at rest: they
// have to be told to leave the old process.
func TestUpgradesUnderLoad(t *testing.T) {
	outside(t)
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		upgradesUnderLoad(t, tier.Choose(0, 6, 24), []string{"1", "3", "2"}, everybody())
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		upgradesUnderLoad(t, tier.Choose(0, 2, 24), []string{"2"}, everybody(), "-tls-self")
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		upgradesUnderLoad(t, tier.Choose(0, 2, 24), []string{"2"}, multiplexed("/", "/slow?for=100ms", "/stream?lines=10"), "-spread", "1s")
	})
	t.Run("HTTP/2 over TLS", func(t *testing.T) {
		t.Parallel()
		upgradesUnderLoad(t, tier.Choose(0, 2, 24), []string{"2"}, multiplexed("/", "/slow?for=100ms"), "-spread", "1s", "-tls-self")
	})
}

func upgradesUnderLoad(t *testing.T, n int, reactors []string, clients []traffic.Client, flags ...string) {
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inUse.Close()
	failures := []struct{ script, says string }{
		{"exit 3", "it has ended: exit status 3"},
		{`exec $program "$@" -reactors -7`, "it has ended: exit status 2"},
		{`exec $program "$@" -inspect ` + inUse.Addr().String(), "address already in use"},
		{"echo ready >&4; exit 0", "it has ended: exit status 0"},
	}
	u := upgradable(t, append(flags, "-reactors", "2", "-cpus", "auto")...)
	u.tls = slices.Contains(flags, "-tls-self")
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	cpus, descriptors := string(allowed.FindSubmatch(status)[1]), u.descriptors(t)
	load := u.load()
	end := load.Start(clients...)
	for i := range n {
		fault := failures[i%len(failures)]
		u.script(t, fault.script)
		require.Contains(t, u.fails(t), fault.says)
		awaitAnswers(t, load, 50)
		u.with(t, "-reactors "+reactors[i%len(reactors)])
		u.upgrade(t)
		require.Contains(t, u.cpus(t), cpus)
		awaitAnswers(t, load, 50)
	}
	if clients[0].Streams > 0 { // they are told at the end of the window
		exectest.Eventually(t, patience, "the ends of all but the last process", func() bool { return strings.Count(u.said(), "ended in order") == n })
	}
	end()
	require.Empty(t, load.Failures())
	t.Logf("%d requests on %d connections", load.Served(), load.Connections())
	if len(reactors) == 1 {
		exectest.Eventually(t, patience, "the descriptors of the first process", func() bool { return u.descriptors(t) == descriptors })
	}
	u.ends(t)
}

var allowed = regexp.MustCompile(`(?m)^Cpus_allowed_list:\s+(\S+)$`)

// cpus returns all CPUs that threads of the process may have which are not bound to one.
func (u *upgraded) cpus(t *testing.T) (all []string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", u.pid))
	require.NoError(t, err)
	for _, task := range tasks {
		status, _ := os.ReadFile(task) // the thread may have ended
		if found := allowed.FindSubmatch(status); found != nil {
			all = append(all, string(found[1]))
		}
	}
	return all
}

// descriptors returns how many the last process has.
func (u *upgraded) descriptors(t *testing.T) int {
	t.Helper()
	return (&exectest.Program{Pid: u.pid}).Descriptors(t)
}

// script installs a script in the place of the binary. In it $program is the real one.
func (u *upgraded) script(t *testing.T, lines string) {
	t.Helper()
	text := "#!/bin/bash\nprogram=" + example("graceful").Path(t) + "\n" + lines + "\n"
	u.replace(t, []byte(text))
}

// with installs the program with further arguments, under the name that it is to look for the next time.
func (u *upgraded) with(t *testing.T, arguments string) {
	t.Helper()
	u.script(t, `exec -a "$0" $program "$@" `+arguments)
}

// ends wants the last process to end in order. Those before it may end meanwhile, and write to the same log.
func (u *upgraded) ends(t *testing.T) {
	t.Helper()
	before := strings.Count(u.said(), "ended in order")
	require.NoError(t, syscall.Kill(u.pid, syscall.SIGTERM))
	exectest.Eventually(t, patience, "the end", func() bool { return errors.Is(syscall.Kill(u.pid, 0), syscall.ESRCH) })
	require.Greater(t, strings.Count(u.said(), "ended in order"), before)
}

// The old process is killed while the new one is still being set up, or when that is ready and waits for its word, under constant
// load: the new one takes over, and clients that were in the backlog of the sockets are served. Only connections that were made
// before the end of the old one may fail.
func TestTheOldProgramIsKilledDuringAnUpgrade(t *testing.T) {
	outside(t)
	t.Parallel()
	for name, script := range map[string]string{
		"before the new one begins": `echo $$ >$0.pid; while [ ! -e $0.go ]; do sleep 0.02; done; exec -a "$0" $program "$@"`,
		"when the new one is ready": `mkfifo $0.says; exec -a "$0" $program "$@" 4>$0.says & read -r ready <$0.says; echo $! >$0.pid; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killedDuringAnUpgrade(t, script)
		})
	}
}

// killedDuringAnUpgrade has a script in the place of the new binary, which writes the number of the process when the
// old one is to be killed.
func killedDuringAnUpgrade(t *testing.T, script string) {
	u := upgradable(t, "-reactors", "2")
	load := u.load()
	end := load.Start(everybody()...)
	awaitAnswers(t, load, 100)
	u.script(t, script)
	require.NoError(t, syscall.Kill(u.pid, syscall.SIGUSR2))
	exectest.Eventually(t, patience, "the new process", func() bool {
		text, _ := os.ReadFile(u.binary + ".pid")
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil {
			u.pid = pid
		}
		return err == nil
	})
	u.Signal(t, syscall.SIGKILL)
	exectest.Eventually(t, patience, "the end of the old process", u.Gone)
	gone := time.Now()
	var waiting []net.Conn // nobody accepts them yet
	for range 20 {
		c, err := net.Dial("tcp", u.Addr)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		waiting = append(waiting, c)
	}
	require.NoError(t, os.WriteFile(u.binary+".go", nil, 0o600))
	for _, c := range waiting {
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, 200, answer.StatusCode)
		require.NoError(t, c.Close())
	}
	require.Contains(t, u.said(), "this one takes over")
	awaitAnswers(t, load, 100)
	end()
	for _, f := range load.Failures() {
		require.NotEqual(t, traffic.Refused, f.Kind, f)
		require.True(t, f.Since.Before(gone), "%v, %v after the end of the old process", f, f.Since.Sub(gone))
	}
	u.ends(t)
}

// A session of TLS goes on with the new process, whose certificate is another one: the keys of its tickets have moved.
func TestTLSSessionsAreResumedAfterAnUpgrade(t *testing.T) {
	outside(t)
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			u := upgradable(t, "-tls-self", "-reactors", "2")
			client := &tls.Config{InsecureSkipVerify: true, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
			resumed := func() bool {
				c, err := tls.Dial("tcp", u.Addr, client)
				require.NoError(t, err)
				defer c.Close()
				_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				require.NoError(t, err)
				answer, err := io.ReadAll(c) // with it comes a ticket
				require.NoError(t, err)
				require.Contains(t, string(answer), fmt.Sprintf("process %d\n", u.pid))
				return c.ConnectionState().DidResume
			}
			require.False(t, resumed(), "the first one")
			require.True(t, resumed())
			for range 2 {
				u.upgrade(t)
				require.True(t, resumed())
			}
			u.ends(t)
		})
	}
}

// A container ends with its process 1.
func TestProcess1IsNotReplaced(t *testing.T) {
	outside(t)
	t.Parallel()
	inside := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		inside.Cloneflags |= syscall.CLONE_NEWUSER
	}
	try := exec.Command("/bin/true")
	try.SysProcAttr = inside
	if err := try.Run(); err != nil {
		t.Skipf("no namespace of processes can be made: %v", err)
	}
	u := startUpgradable(t, func(binary string) *exec.Cmd {
		cmd := exec.Command(binary, "-addr", "127.0.0.1:0")
		cmd.SysProcAttr = inside
		return cmd
	})
	load := u.load()
	end := load.Start(everybody()...)
	for range 2 {
		require.Contains(t, u.fails(t), "this is process 1, and its container would end with it; start another container")
		awaitAnswers(t, load, 10)
	}
	end()
	require.Empty(t, load.Failures())
	u.ends(t)
}

// activated starts the program as systemd does: with a listening socket, which is the test's, as descriptor 3.
func activated(t *testing.T, l *net.TCPListener, name string, flags ...string) *upgraded {
	t.Helper()
	socket, err := l.File()
	require.NoError(t, err)
	defer socket.Close()
	u := startUpgradable(t, func(binary string) *exec.Cmd {
		cmd := exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"`, binary}, flags...)...)
		cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "LISTEN_FDNAMES="+name)
		cmd.ExtraFiles = []*os.File{socket}
		return cmd
	})
	require.Equal(t, l.Addr().String(), u.Addr)
	return u
}
