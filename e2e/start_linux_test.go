package e2e

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/exectest"
)

// refused wants the program to end by itself, with this status and one sentence that names what is wrong.
func (l launch) refused(t *testing.T, status int, naming string) {
	t.Helper()
	s := l.run(t)
	require.Equal(t, status, s.Exit(t))
	said := strings.TrimSpace(s.Said())
	require.NotEmpty(t, said, "ended without a word")
	require.NotContains(t, said, "\n", "more than a sentence")
	require.Contains(t, said, naming)
	require.Equal(t, 1, strings.Count(said, naming), "%s, named twice", said)
}

// None of these goes to a name server: a host with a space in it is no domain name.
func TestBadAddress(t *testing.T) {
	plainly(t)
	t.Parallel()
	for _, row := range []struct{ name, addr, naming string }{
		{"no port", "127.0.0.1", actions.name + ": cannot listen on 127.0.0.1: missing port in address"},
		{"a port out of range", "127.0.0.1:99999", "99999"},
		{"a port that is no number", "127.0.0.1:echos", "127.0.0.1:echos"},
		{"a host that there cannot be", "no such host:7007", "no such host:7007"},
		{"an address of another machine", "192.0.2.1:7007", "192.0.2.1:7007"},
		{"nothing that is an address", "!", "!"},
		{"a path in no folder", "unix:/no/such/folder/echo.sock", "/no/such/folder/echo.sock"},
		{"a path of more than 108 bytes", "unix:/tmp/" + strings.Repeat("x", 120), "/tmp/xxx"},
	} {
		t.Run(row.name, func(t *testing.T) { launch{echo: actions, addr: row.addr}.refused(t, 1, row.naming) })
	}
}

func TestGoodAddress(t *testing.T) {
	plainly(t)
	t.Parallel()
	rows := []struct{ name, addr, dial string }{
		{"any port of the loopback", "127.0.0.1:0", ""},
		{"another address of the loopback", "127.0.0.2:0", ""},
		{"a name", "localhost:0", ""},
		{"every interface", ":0", "127.0.0.1"},
		{"every interface of IPv4", "0.0.0.0:0", "127.0.0.1"},
	}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		require.NoError(t, l.Close())
		rows = append(rows, struct{ name, addr, dial string }{"the loopback of IPv6", "[::1]:0", ""})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			s := launch{echo: actions, addr: row.addr}.start(t)
			host, port, err := net.SplitHostPort(s.address)
			require.NoError(t, err)
			require.NotEqual(t, "0", port, "the log has the port that was bound")
			if row.dial != "" {
				host = row.dial
			}
			s.address = net.JoinHostPort(host, port)
			require.NoError(t, whole(s.dial(t), content(1, 1000), 100))
			s.Stop(t)
		})
	}
}

// Reactors share one port among themselves (SO_REUSEPORT); no other program may share it with them. Not beside other tests,
// whose clients could be given the port before it is used again.
func TestAddressInUse(t *testing.T) {
	plainly(t)
	for _, row := range []struct {
		name string
		addr func(t *testing.T) string
		over func(inUse string) string
	}{
		{"TCP", func(*testing.T) string { return "127.0.0.1:0" }, func(a string) string { return a }},
		{"TCP, asked for on every interface", func(*testing.T) string { return "127.0.0.1:0" }, portOf},
		{"Unix", func(t *testing.T) string { return "unix:" + folder(t) + "/echo.sock" },
			func(a string) string { return "unix:" + a }},
	} {
		t.Run(row.name, func(t *testing.T) {
			first := launch{echo: actions, addr: row.addr(t)}.start(t)
			c := first.dialed(t, 1)[0]
			again := row.over(first.address)
			launch{echo: actions, addr: again}.refused(t, 1, again)
			require.NoError(t, ping(c, "still here"))
			require.NoError(t, leave(c))
			require.NoError(t, whole(first.dial(t), content(1, 1000), 100))
			first.Stop(t)
			launch{echo: actions, addr: again}.start(t).Stop(t)
		})
	}
}

func portOf(address string) string { return address[strings.LastIndex(address, ":"):] }

// withoutRights takes the rights of root from the server, if the test has them.
func withoutRights(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
}

func TestMissingPermission(t *testing.T) {
	plainly(t)
	t.Parallel()
	closed := folder(t)
	require.NoError(t, os.Chmod(closed, 0o500))
	rows := map[string]string{"a folder without permission": "unix:" + closed + "/echo.sock"}
	if first := unprivileged(t); first > 1 { // containers may set it to 0: no port is privileged there
		rows["a privileged port"] = "127.0.0.1:" + strconv.Itoa(first-1)
	}
	for name, addr := range rows {
		t.Run(name, func(t *testing.T) { launch{echo: actions, addr: addr, change: withoutRights}.refused(t, 1, addr) })
	}
}

// unprivileged returns the lowest port that needs no rights: ip(7).
func unprivileged(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	require.NoError(t, err)
	return int(number(string(text)))
}

// What a killed server leaves behind is replaced, also twice.
func TestStaleUnixSocketIsReplaced(t *testing.T) {
	plainly(t)
	t.Parallel()
	l := launch{echo: actions, addr: "unix:" + folder(t) + "/echo.sock"}
	for range 2 {
		s := l.start(t)
		s.Signal(t, unix.SIGKILL)
		exectest.Eventually(t, patience, "its end", s.Gone)
		require.FileExists(t, s.address)
	}
	s := l.start(t)
	require.NoError(t, whole(s.dial(t), content(1, 1000), 100))
	s.Stop(t)
	require.NoFileExists(t, s.address)
}

func TestOtherFilesAtTheSocketPathStay(t *testing.T) {
	plainly(t)
	t.Parallel()
	const inUse, noSocket = "address already in use", "socket operation on non-socket"
	for _, row := range []struct {
		name  string
		there func(t *testing.T, path string)
		says  string
	}{
		{"a file", func(t *testing.T, path string) { require.NoError(t, os.WriteFile(path, []byte("mine"), 0o600)) }, noSocket},
		{"a folder", func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, noSocket},
		{"a link to nowhere", func(t *testing.T, path string) { require.NoError(t, os.Symlink("nowhere", path)) }, noSocket},
		{"a pipe", func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) }, noSocket},
		{"a socket that listens", listens, inUse},
		{"a socket for datagrams", takesDatagrams, inUse},
		{"a socket whose queue is full", listensOverrun, inUse},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := folder(t) + "/echo.sock"
			row.there(t, path)
			before, err := os.Lstat(path)
			require.NoError(t, err)
			launch{echo: actions, addr: "unix:" + path}.refused(t, 1, actions.name+": cannot listen on unix:"+path+": "+row.says)
			after, err := os.Lstat(path)
			require.NoError(t, err)
			require.True(t, os.SameFile(before, after), "replaced")
			require.Equal(t, before.Size(), after.Size())
		})
	}
}

func listens(t *testing.T, path string) {
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
}

func takesDatagrams(t *testing.T, path string) {
	c, err := net.ListenPacket("unixgram", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
}

// listensOverrun never accepts. With its queue full a connect that does not wait fails with EAGAIN, and
// one that waits never returns: connect(2), unix(7).
func listensOverrun(t *testing.T, path string) {
	at := &unix.SockaddrUnix{Name: path}
	l := unixSocket(t)
	require.NoError(t, unix.Bind(l, at))
	require.NoError(t, unix.Listen(l, 0))
	for range 100 {
		if err := unix.Connect(unixSocket(t), at); err == unix.EAGAIN {
			return
		}
	}
	require.FailNow(t, "the queue does not fill")
}

func unixSocket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}
