package service_test

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/service"
)

const crowd = 10_000

func init() { children["crowd"] = attend }

// A connection is no goroutine: a server has those of its reactors and a dozen more, however many clients
// there are. These are in a process of their own.
func TestTenThousandConnectionsBringNoGoroutine(t *testing.T) {
	tier.Need(t, tier.Full, "opens ten thousand connections under each idle strategy")
	allowDescriptors(t, crowd+100)
	servertest.UnderEach(t, bringNoGoroutine)
}

func bringNoGoroutine(t *testing.T, cfg act.Config) {
	v := &service.TCP{Address: loopback, Handler: echo}
	w := begin(t, cfg, v.Setup)

	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, v.Addr().String()) // without a context: that would be a goroutine
	cmd.Env = append(os.Environ(), childVariable+"=crowd")
	cmd.Stderr = os.Stderr
	leave, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = leave.Close()
		require.NoError(t, cmd.Wait())
	}()

	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "all are served\n", said)
	require.Equal(t, crowd, v.Open())
	require.LessOrEqual(t, runtime.NumGoroutine(), cfg.Schedulers+12)

	require.NoError(t, leave.Close())
	require.NoError(t, w.order(servertest.Drain))
	require.Zero(t, v.Open())
}

// attend connects so many times, is echoed each time, says so, and stays until its standard input ends. Many at a
// time are on their way, so that a server that only looks now and then is not waited for each time.
func attend(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	const together = 100
	var fds [together]int
	for i := 0; i < crowd; i += together {
		for k := range fds {
			if fds[k], err = speak(at); err != nil {
				return fmt.Errorf("connection %d: %w", i+k, err)
			}
		}
		for k, fd := range fds {
			if err := hearEcho(fd); err != nil {
				return fmt.Errorf("connection %d: %w", i+k, err)
			}
		}
	}
	fmt.Println("all are served")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

// speak connects, says a byte, and leaves the connection open. Its calls block, a few seconds at most.
func speak(at netip.AddrPort) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	atMost := unix.NsecToTimeval(servertest.Timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &atMost); err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return -1, err
	}
	_, err = unix.Write(fd, []byte("!"))
	return fd, err
}

func hearEcho(fd int) error {
	n, err := unix.Read(fd, make([]byte, 8))
	for err == unix.EINTR { // a call with a limit in time is not restarted: signal(7)
		n, err = unix.Read(fd, make([]byte, 8))
	}
	if err == nil && n != 1 {
		err = fmt.Errorf("echoed %d bytes", n)
	}
	return err
}

// allowDescriptors lets this process, and what it starts, have n of them.
func allowDescriptors(t *testing.T, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	require.GreaterOrEqual(t, limit.Max, n,
		"this test needs %d descriptors: raise the hard limit (ulimit -Hn)", n)
	limit.Cur = limit.Max
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
}
