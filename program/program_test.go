package program_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/upgrade"
)

// variable names the main function that the test binary is, when a test runs it as a program.
const variable = "DAIMON_PROGRAM"

var mains = map[string]func(){
	"echo":   func() { program.Serve("127.0.0.1:0", echo.Echo) },
	"broker": ExampleOption,
	"site": func() {
		ExampleServer()
		fmt.Println("after the end")
	},
	"reloading": func() {
		server := program.Server{Addr: "127.0.0.1:0"}
		lines := bufio.NewReader(os.Stdin)
		server.Reload = func() error { // takes as long as the test wants
			line, err := lines.ReadString('\n')
			if line != "good\n" {
				err = errors.New("nobody may read it")
			}
			return err
		}
		server.Parse()
		server.Run(server.Listen(server.Addr, echo.Echo))
	},
	"hasty": func() {
		self, err := os.Executable() // at the path in Args there is nothing
		if err != nil {
			panic(err)
		}
		server := program.Server{Addr: "127.0.0.1:0", Upgrade: &upgrade.Upgrade{Program: self, Terms: servertest.Cut}}
		server.Parse()
		server.Run(server.Listen(server.Addr, echo.Echo))
	},
	"parent": func() {
		var server program.Server
		server.Parse()
		server.Run(parent{})
	},
	"unknown address": func() {
		var server program.Server
		server.Parse()
		server.Run(unknown{})
	},
	"no address": func() {
		var server program.Server
		server.Parse()
		server.Run(nothing{})
	},
}

func TestMain(m *testing.M) {
	if name := os.Getenv(variable); name != "" {
		mains[name]()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// nothing is a service that does nothing.
type nothing struct{}

func (nothing) Setup(*act.Scheduler) error { return nil }

// parent is a service that starts a program, which sends itself a SIGPIPE.
type parent struct{}

func (parent) Setup(*act.Scheduler) error {
	return exec.Command("sh", "-c", "kill -PIPE $$; exit 0").Run()
}

// unknown is a Socket that does not know its address.
type unknown struct{ nothing }

func (unknown) Addr() net.Addr { return nil }

// running is a program that a test has started.
type running struct {
	*exec.Cmd
	out, said bytes.Buffer // what it has written, complete after exit
	lines     *bufio.Reader
}

func start(t *testing.T, name string, arguments ...string) *running {
	r := prepare(t, name, arguments...)
	r.start(t)
	return r
}

func prepare(t *testing.T, name string, arguments ...string) *running {
	self, err := os.Executable()
	require.NoError(t, err)
	r := &running{Cmd: exec.Command(self, arguments...)}
	r.Args[0] = "/somewhere/server"
	r.Env = append(os.Environ(), variable+"="+name, "GORACE=atexit_sleep_ms=0")
	r.Stdout = &r.out
	return r
}

func (r *running) start(t *testing.T) {
	stderr, err := r.StderrPipe()
	require.NoError(t, err)
	r.lines = bufio.NewReader(io.TeeReader(stderr, &r.said))
	require.NoError(t, r.Start())
	t.Cleanup(func() { _ = r.Process.Kill() })
}

// listens returns the next address that the log names.
func (r *running) listens(t *testing.T) string {
	for {
		line, err := r.lines.ReadString('\n')
		require.NoError(t, err, "it has ended: %s", &r.said)
		if _, addr, found := strings.Cut(line, "listening on "); found {
			return strings.TrimSpace(addr)
		}
	}
}

func (r *running) signal(t *testing.T, sig os.Signal) { require.NoError(t, r.Process.Signal(sig)) }

// logs waits for a line with text.
func (r *running) logs(t *testing.T, text string) {
	for {
		line, err := r.lines.ReadString('\n')
		require.NoError(t, err, "it has ended: %s", &r.said)
		if strings.Contains(line, text) {
			return
		}
	}
}

// exit waits for the end and returns the status.
func (r *running) exit(t *testing.T) int {
	_, err := io.Copy(io.Discard, r.lines)
	require.NoError(t, err)
	_ = r.Wait() // ProcessState has the status
	return r.ProcessState.ExitCode()
}

func dial(t *testing.T, addr string) net.Conn {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	c, err := net.Dial(network, addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// talk returns a connection that is in use.
func talk(t *testing.T, addr string) net.Conn {
	c := dial(t, addr)
	_, err := c.Write([]byte("hello\n"))
	require.NoError(t, err)
	back, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "hello\n", back)
	return c
}

func TestASignalEndsInOrder(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "socket")
	if runtime.GOOS == "linux" { // other systems have file names of UTF-8
		socket += "\xff"
	}
	for addr, sig := range map[string]syscall.Signal{"127.0.0.1:0": syscall.SIGINT, "unix:" + socket: syscall.SIGTERM} {
		r := start(t, "echo", "-addr", addr)
		at := r.listens(t)
		if require.True(t, utf8.ValidString(at)); sig == syscall.SIGTERM {
			at = addr
		}
		c := talk(t, at)
		r.signal(t, sig)
		r.logs(t, "ending")
		require.NoError(t, c.Close())
		require.Zero(t, r.exit(t), addr)
		require.Contains(t, r.said.String(), "ended in order")
	}
}

// While Reload blocks, the program serves. The supervisor hears of its beginning and its end, even if it fails, and if there is
// nothing to reload: without an answer "systemctl reload" fails.
func TestSIGHUPIsAReload(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "notify")
	supervisor, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer supervisor.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	hears := func(what string) {
		b := make([]byte, 4096)
		require.NoError(t, supervisor.SetReadDeadline(time.Now().Add(servertest.Timeout)))
		n, err := supervisor.Read(b)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(b[:n]), what), "%s", b[:n])
	}
	r := start(t, "echo")
	r.listens(t)
	hears("READY=1\nMAINPID=")
	r.signal(t, syscall.SIGHUP)
	hears("RELOADING=1")
	hears("READY=1\nSTATUS=serving")
	r.signal(t, syscall.SIGKILL) // after which it says nothing
	r.exit(t)

	r = prepare(t, "reloading")
	in, err := r.StdinPipe()
	require.NoError(t, err)
	r.start(t)
	addr := r.listens(t)
	hears("READY=1\nMAINPID=")
	for _, row := range [][2]string{{"good", "reloaded"}, {"bad", "nobody may read it"}, {"good", "reloaded"}} {
		r.signal(t, syscall.SIGHUP)
		hears("RELOADING=1")
		talk(t, addr)
		_, err := fmt.Fprintln(in, row[0])
		require.NoError(t, err)
		r.logs(t, row[1])
		hears("READY=1\nSTATUS=serving")
	}
	require.Equal(t, 1, strings.Count(r.said.String(), "nobody may read it"))
}

func TestASecondSignalCutsWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := start(t, "echo", "-drain", "1m", "-reactors", "3")
	c := talk(t, r.listens(t))
	r.signal(t, syscall.SIGTERM)
	r.logs(t, "ending")
	r.signal(t, syscall.SIGINT)
	require.Zero(t, r.exit(t))
	addr := c.RemoteAddr().String()
	says := `echo.Echo.func1 of tcp ` + addr + `, peer ` + c.LocalAddr().String() + `, still for [\d.ms]+, (waits for input from ` + c.LocalAddr().String() + `|ready)` // to hear of the first signal
	require.Regexp(t, `cut without a drain.*\b1 task\b`, r.said.String())
	require.Regexp(t, `(?m)^.*WARN\scut: \S*`+says+`$`, r.said.String())
}

// An Upgrade may have other terms than a signal.
func TestTheTermsOfAnUpgrade(t *testing.T) {
	t.Parallel()
	r := start(t, "hasty", "-drain", "1s")
	talk(t, r.listens(t))
	r.signal(t, syscall.SIGUSR2)
	r.logs(t, "replaced")
	replaced := regexp.MustCompile(`replaced\s+\{"by process": (\d+)\}`).FindStringSubmatch(r.said.String())
	require.NotNil(t, replaced, &r.said)
	pid, err := strconv.Atoi(replaced[1])
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	r.logs(t, "cut ")
	require.Contains(t, r.said.String(), "cut without a drain")
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM)) // otherwise it holds standard error open
	require.Zero(t, r.exit(t))
}

func TestServicesAndFlagsOfItsOwn(t *testing.T) {
	t.Parallel()
	r := start(t, "site", "-addr", "127.0.0.1:0", "-admin", "127.0.0.1:0", "-reactors", "3")
	public, private := r.listens(t), r.listens(t)
	for _, row := range [][2]string{
		{public, "This is visit 1.\n"}, {public, "This is visit 2.\n"}, {private, "Hello, World!\n"},
	} {
		c := dial(t, row[0])
		servertest.Send(t, c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(string(answer), row[1]), "%s", answer)
	}
	r.signal(t, syscall.SIGTERM)
	require.Zero(t, r.exit(t))
	require.Equal(t, "after the end\n", r.out.String())
	require.Contains(t, r.said.String(), "ended in order")
}

func TestItEndsWhenNoServiceIsLeft(t *testing.T) {
	t.Parallel()
	for _, main := range []string{"no address", "unknown address"} {
		r := start(t, main)
		require.Zero(t, r.exit(t), main)
		require.Contains(t, r.said.String(), "ended in order")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	used, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer used.Close()
	for _, row := range []struct {
		name, main string
		arguments  []string
		status     int
		says       string
	}{
		{"an address in use", "site", []string{"-addr", used.Addr().String()}, 1,
			"cannot listen on " + used.Addr().String() + ": address already in use"},
		{"an unknown flag", "echo", []string{"-port", "1"}, 2, "flag provided but not defined: -port"},
		{"an argument", "echo", []string{"-drain", "5s", "s"}, 2, `unexpected argument "s"`},
		{"no path", "echo", []string{"-addr", "unix:"}, 2, `invalid value "unix:" for flag -addr: missing path`},
		{"a program of a service has the default action for SIGPIPE", "parent", nil, 1, "signal: broken pipe"},
		{"no address to choose", "no address", []string{"-addr", "127.0.0.1:0"}, 2, "flag provided but not defined: -addr"},
		{"too few reactors", "echo", []string{"-reactors", "-1"}, 2, "-reactors must not be negative: -1"},
		{"too many reactors", "echo", []string{"-reactors", "1025"}, 2, "-reactors must be at most 1024: 1025"},
		{"an unknown strategy", "echo", []string{"-idle", "x"}, 2, `-idle must be interrupt, poll, hybrid or busy, not "x"`},
		{"no unit", "echo", []string{"-drain", "5"}, 2, `invalid value "5" for flag -drain: it needs a unit, as in 5s`},
		{"no duration", "echo", []string{"-drain", "x"}, 2,
			`invalid value "x" for flag -drain: it is not a duration, such as 300ms, 5s or 1m30s`},
		{"no network", "broker", []string{"-proxy-from", "::1,x"}, 2, `invalid value "::1,x" for flag -proxy-from: "x" is neither an address nor a network`},
		{"a negative number", "broker", []string{"-max-per-source", "-1"}, 2, "-max-per-source must not be negative: -1"},
		{"a negative rate", "broker", []string{"-rate-per-source", "-1"}, 2, "-rate-per-source must not be negative: -1"},
		{"a certificate without a key", "broker", []string{"-tls-cert", "c"}, 2, "-tls-cert needs -tls-key, the key of the certificate"},
		{"a key without a certificate", "broker", []string{"-tls-key", "k"}, 2, "-tls-key needs -tls-cert, the certificate of the key"},
		{"two certificates", "broker", []string{"-tls-self", "-tls-cert", "c"}, 2,
			"-tls-self makes a certificate: leave out -tls-cert and -tls-key, or -tls-self"},
		{"an Option of its own", "broker", []string{"-topics", "0"}, 2, "-topics must be above 0: 0"},
		{"an Option that cannot be set up", "broker", []string{"-tls-cert", "/nowhere", "-tls-key", "k"}, 1,
			"cannot read the certificate: open /nowhere: no such file or directory"},
		{"a negative duration", "echo", []string{"-drain", "-5s"}, 2, `invalid value "-5s" for flag -drain: it must not be negative`},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := start(t, row.main, row.arguments...)
			require.Equal(t, row.status, r.exit(t))
			require.Equal(t, "server: "+row.says+"\n", r.said.String())
			require.NotContains(t, r.out.String(), "after the end")
		})
	}
}
