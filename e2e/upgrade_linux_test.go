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

	"github.com/daimon-go/daimon/internal/exectest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/internal/traffic"
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

// install puts a program in the place of the binary, as install(1) does: by another file of the same name.
func (u *upgraded) install(t *testing.T, program string) {
	t.Helper()
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(u.binary+"~", content, 0o755))
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

func TestUpgradesUnderLoad(t *testing.T) {
	outside(t)
	for _, flags := range [][]string{nil, {"-tls-self"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			u := upgradable(t, append(flags, "-reactors", "2")...)
			u.tls = len(flags) > 0
			load := u.load()
			end := load.Start(everybody()...)
			for range tier.Choose(3, 5, 20) {
				awaitAnswers(t, load, 50)
				u.upgrade(t)
			}
			end()
			require.Empty(t, load.Failures())
			t.Logf("%d requests on %d connections", load.Served(), load.Connections())
			u.ends(t)
		})
	}
}

// Both services of the program go through upgrades. The file of the Unix socket stays the same, and goes with the last process.
func TestUpgradesOfAUnixSocketBesideTCP(t *testing.T) {
	outside(t)
	path := filepath.Join(folder(t), "web")
	u := upgradable(t, "-addr", "unix:"+path, "-health", "127.0.0.1:0", "-reactors", "2")
	health := secondAddress(t, u.said)
	file, err := os.Stat(path)
	require.NoError(t, err)
	loads := []*traffic.Load{u.load(), {Addr: health}}
	ends := []func(){loads[0].Start(everybody()...), loads[1].Start(append(fresh("/healthz", "/readyz"), staying("/healthz", "/readyz")...)...)}
	for range tier.Choose(0, 3, 20) {
		for _, load := range loads {
			awaitAnswers(t, load, 50)
		}
		u.upgrade(t)
		same, err := os.Stat(path)
		require.NoError(t, err)
		require.True(t, os.SameFile(file, same))
	}
	for i, load := range loads {
		ends[i]()
		require.Empty(t, load.Failures())
		t.Logf("%s: %d requests on %d connections", load.Addr, load.Served(), load.Connections())
	}
	u.ends(t)
	require.NoFileExists(t, path)
}

// script installs a script in the place of the binary. In it $program is the real one.
func (u *upgraded) script(t *testing.T, lines string) {
	t.Helper()
	text := "#!/bin/bash\nprogram=" + example("graceful").Path(t) + "\n" + lines + "\n"
	require.NoError(t, os.WriteFile(u.binary+"~", []byte(text), 0o755))
	require.NoError(t, os.Rename(u.binary+"~", u.binary))
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

func TestAnUpgradeThatFailsHarmsNobody(t *testing.T) {
	outside(t)
	u := upgradable(t, "-reactors", "2")
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inUse.Close()
	for _, row := range []struct{ name, script, says string }{
		{"it dies", "exit 3", "it has ended: exit status 3"},
		{"it is killed", "kill -9 $$", "it has ended: signal: killed"},
		{"its flags are wrong", `exec $program "$@" -reactors -7`, "it has ended: exit status 2"},
		{"it refuses", `exec $program "$@" -inspect ` + inUse.Addr().String(), "address already in use"},
		{"it says nonsense", "echo hello >&4; sleep 10", `it says \"hello\" in place of \"ready\"`},
		{"it says that it is ready and dies", "echo ready >&4; exit 0", "it has ended: exit status 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			load := u.load()
			end := load.Start(staying("/", "/slow?for=50ms", "/stream?lines=3", "/ws")...)
			u.script(t, row.script)
			require.Contains(t, u.fails(t), row.says)
			end()
			require.Empty(t, load.Failures())
		})
	}
	u.with(t, "")
	u.upgrade(t)
	u.ends(t)
}

// The new program is started by a thread that is not bound to a CPU, and finds as many of them as the first one.
func TestAnUpgradeToMoreAndFewerReactors(t *testing.T) {
	outside(t)
	u := upgradable(t, "-reactors", "2")
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	all := field(string(status), "Cpus_allowed_list")
	load := u.load()
	end := load.Start(everybody()...)
	for _, reactors := range []string{"1", "3", "2", "5", "1"}[:tier.Choose(0, 3, 5)] {
		u.with(t, "-reactors "+reactors)
		u.upgrade(t)
		require.Contains(t, u.cpus(t), all)
		awaitAnswers(t, load, 50)
	}
	end()
	require.Empty(t, load.Failures())
	u.ends(t)
}

// cpus returns the CPUs of each thread.
func (u *upgraded) cpus(t *testing.T) (all []string) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", u.pid))
	require.NoError(t, err)
	for _, task := range tasks {
		if th, ok := readThread(task); ok {
			all = append(all, th.cpus)
		}
	}
	return all
}

// The old process is killed while the new one is still being set up, or when that is ready and waits for its word, under constant
// load: the new one takes over, and clients that were in the backlog of the sockets are served. Only connections that were made
// before the end of the old one may fail.
func TestTheOldProgramIsKilledDuringAnUpgrade(t *testing.T) {
	outside(t)
	for name, script := range map[string]string{
		"before the new one begins": `echo $$ >$0.pid; while [ ! -e $0.go ]; do sleep 0.02; done; exec -a "$0" $program "$@"`,
		"when the new one is ready": `mkfifo $0.says; exec -a "$0" $program "$@" 4>$0.says & read -r ready <$0.says; echo $! >$0.pid; wait`,
	} {
		t.Run(name, func(t *testing.T) { killedDuringAnUpgrade(t, script) })
	}
}

// killedDuringAnUpgrade has a script in the place of the new binary, which writes the number of the process when the old one is to
// be killed.
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
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
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
			for range 3 {
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

// adopted requires that a descriptor of the process is a socket that does not block, and that no child inherits by accident.
func (u *upgraded) adopted(t *testing.T, fd int) {
	t.Helper()
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", u.pid, fd))
	require.NoError(t, err)
	require.Contains(t, link, "socket:")
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", u.pid, fd))
	require.NoError(t, err)
	flags, err := strconv.ParseInt(field(string(info), "flags"), 8, 64)
	require.NoError(t, err)
	require.NotZero(t, flags&syscall.O_NONBLOCK)
	require.NotZero(t, flags&syscall.O_CLOEXEC)
}

// The socket is shared by all reactors, goes through upgrades, and stays when the program ends: clients that come then wait for
// the next start.
func TestSocketActivation(t *testing.T) {
	outside(t)
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer l.Close()
	flags := []string{"-addr", l.Addr().String(), "-reactors", "2"}
	u := activated(t, l, "web", flags...) // with a socket that blocks: os/exec has called its Fd
	u.adopted(t, 3)
	load := u.load()
	end := load.Start(fresh("/", "/", "/slow?for=20ms")...)
	for range 3 {
		awaitAnswers(t, load, 100)
		u.upgrade(t)
		u.adopted(t, 5)
	}
	end()
	u.ends(t)
	late, err := net.Dial("tcp", u.Addr)
	require.NoError(t, err)
	defer late.Close()
	again := activated(t, l, "unknown", flags...)
	_, err = io.WriteString(late, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(late), nil)
	require.NoError(t, err)
	require.Equal(t, 200, answer.StatusCode)
	require.Empty(t, load.Failures())
	again.ends(t)
}

// state is what a process has, when it has no clients but a viewer.
type state struct{ threads, resident, heap int64 }

// descriptors returns how many the last process has.
func (u *upgraded) descriptors(t *testing.T) int {
	t.Helper()
	return (&exectest.Program{Pid: u.pid}).Descriptors(t)
}

// state returns that of the last process, which has to be left with so many descriptors, after a collection of garbage.
func (u *upgraded) state(t *testing.T, descriptors int) (s state) {
	t.Helper()
	p := &exectest.Program{Pid: u.pid}
	exectest.Eventually(t, patience, "the descriptors of connections to be closed", func() bool { return u.descriptors(t) == descriptors })
	threads, err := os.ReadDir(p.Proc("task"))
	require.NoError(t, err)
	s.threads = int64(len(threads))
	v := viewerIn(t, u.said())
	defer v.CloseIdleConnections()
	_, heap := v.get(t, "/debug/pprof/heap?gc=1&debug=1")
	inUse := regexp.MustCompile(`# HeapAlloc = (\d+)`).FindStringSubmatch(heap)
	require.NotNil(t, inUse)
	s.heap, err = strconv.ParseInt(inUse[1], 10, 64)
	require.NoError(t, err)
	s.resident = int64(p.Resident(t))
	return s
}

// Every second new binary fails, each in another way, while clients of all kinds keep coming. None of them sees a failure, and
// the last process has as many descriptors and threads as the first, and as much memory.
func TestUpgradesOfWhichEverySecondFails(t *testing.T) {
	outside(t)
	t.Run("plain", func(t *testing.T) { t.Parallel(); everySecondFails(t, 20) })
	t.Run("TLS", func(t *testing.T) { t.Parallel(); everySecondFails(t, tier.Choose(3, 10, 20), "-tls-self") })
}

// everySecondFails has n binaries that fail, and n that take over.
func everySecondFails(t *testing.T, n int, flags ...string) {
	u := upgradable(t, slices.Concat(flags, []string{"-reactors", "2", "-upgrade-within", "10s"}, inspectable)...)
	u.tls = len(flags) > 0
	load, descriptors := u.load(), u.descriptors(t)
	serve := func() { // the same to the first process and the last
		end := load.Start(everybody()...)
		awaitAnswers(t, load, 500)
		end()
	}
	serve()
	first := u.state(t, descriptors)
	failures := []struct{ script, says string }{
		{"exit 3", "it has ended: exit status 3"},
		{"echo no: not today >&4; exec sleep 60", "not today"},
		{"echo ready >&4; exit 0", "it has ended: exit status 0"},
		{"kill -9 $$", "it has ended: signal: killed"},
		{`exec $program "$@" -reactors -7`, "it has ended: exit status 2"},
		{"exec sleep 60", "it was not ready in 10s"},
		{"echo ready >&4; read -r go <&3; exec sleep 60", "it was not ready in 10s"},
	}
	quick := failures[:5]
	end := load.Start(everybody()...)
	for i := range n {
		fault := quick[i%len(quick)]
		if i < len(failures) { // each of them once
			fault = failures[i]
		}
		u.script(t, fault.script)
		require.Contains(t, u.fails(t), fault.says)
		awaitAnswers(t, load, 50)
		u.with(t, "")
		u.upgrade(t)
		awaitAnswers(t, load, 50)
	}
	end()
	serve()
	require.Empty(t, load.Failures())
	last := u.state(t, descriptors)
	t.Logf("%d requests on %d connections; first %+v, last %+v", load.Served(), load.Connections(), first, last)
	require.LessOrEqual(t, last.threads, first.threads+3, "the Go runtime starts threads when it needs them")
	require.LessOrEqual(t, last.heap, first.heap+first.heap/4)
	require.LessOrEqual(t, last.resident, first.resident+first.resident/4)
	u.ends(t)
}

// wrk sees no error of a socket while the server is replaced again and again.
func TestUpgradesUnderWrk(t *testing.T) {
	outside(t)
	wrk := tier.Tool(t, "wrk")
	u := upgradable(t, "-reactors", "2")
	out := exectest.Start(t, exec.Command(wrk, "-t2", "-c50", "-d60s", "http://"+u.Addr+"/")) // SIGINT ends it
	for range 20 {
		u.upgrade(t)
	}
	out.Signal(t, syscall.SIGINT)
	require.Zero(t, out.Exit(t))
	said := out.Out()
	t.Log(said)
	require.NotContains(t, said, "Socket errors")
	require.NotContains(t, said, "Non-2xx")
	require.NotContains(t, said, "\n  0 requests in ")
	u.ends(t)
}
