//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/internal/testing/tier"
)

func init() { children["listen"] = listenAsChild }

// listenAsChild is a second instance of a server.
func listenAsChild() {
	_, err := sys.ListenTCP(netip.MustParseAddrPort(os.Getenv("NETPOLL_TEST_ADDR")), 0)
	fmt.Print(err)
}

// asChild runs the test binary as another program and returns what it prints.
func asChild(t *testing.T, name string, env ...string) string {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output() // and not what -cover says on standard error
	require.NoError(t, err, "%s", out)
	return string(out)
}

func TestSecondInstanceIsRefused(t *testing.T) {
	for siblings := range 3 {
		t.Run(fmt.Sprintf("%d siblings", siblings), func(t *testing.T) {
			balanced(t)
			_, addr := listen(t, loopback)
			for range siblings {
				fd, err := sys.JoinTCP(addr, 0)
				require.NoError(t, err)
				hold(t, fd)
			}
			_, err := sys.ListenTCP(addr, 0)
			require.Equal(t, unix.EADDRINUSE, err, "in this process")
			require.Equal(t, unix.EADDRINUSE.Error(), asChild(t, "listen", "NETPOLL_TEST_ADDR="+addr.String()))
		})
	}
}

// With SO_REUSEPORT set between bind and listen, several of these won.
func TestOfInstancesThatStartTogetherOneListens(t *testing.T) {
	balanced(t)
	l, addr := listen(t, loopback)
	require.NoError(t, unix.Shutdown(l, unix.SHUT_RDWR)) // stays bound and keeps others from the port
	for range 100 {
		won := together(4, func() (int, error) { return sys.ListenTCP(addr, 0) })
		require.Len(t, won, 1)
		require.NoError(t, sys.Close(won[0]))
	}
}

// together calls f in n goroutines at once and returns the descriptors that they got.
func together(n int, f func() (int, error)) (won []int) {
	var start, done sync.WaitGroup
	var mu sync.Mutex
	start.Add(1)
	for range n {
		done.Go(func() {
			start.Wait()
			if fd, err := f(); err == nil {
				mu.Lock()
				defer mu.Unlock()
				won = append(won, fd)
			}
		})
	}
	start.Done()
	done.Wait()
	return won
}

func TestRestartBesideTimeWait(t *testing.T) {
	balanced(t)
	l, err := sys.ListenTCP(loopback, 0)
	require.NoError(t, err)
	addr := addrPort(t, l)
	client := dialled(t, addr)
	server := accepted(t, l)
	require.NoError(t, sys.Close(server)) // the side that closes first keeps TIME_WAIT
	require.Empty(t, hearAll(t, client))
	require.NoError(t, sys.Close(client))
	require.NoError(t, sys.Close(l))
	again, err := sys.ListenTCP(addr, 0)
	require.NoError(t, err)
	hold(t, again)
	sibling, err := sys.JoinTCP(addr, 0)
	require.NoError(t, err)
	hold(t, sibling)
}

// Where there is no IPv6 its addresses can be neither listened at nor dialled.
func TestVersionsOfTheInternetProtocol(t *testing.T) {
	for _, row := range []struct {
		listen, dial string
		reached      bool
	}{
		{"[::]:0", "127.0.0.1", mapsIPv4},
		{"[::]:0", "::1", true},
		{"0.0.0.0:0", "127.0.0.1", true},
		{"0.0.0.0:0", "::1", false},
		{"[::1]:0", "127.0.0.1", false},
		{"[::ffff:127.0.0.1]:0", "127.0.0.1", true},
		{"127.0.0.1:0", "::ffff:127.0.0.1", true},
	} {
		t.Run(row.listen+" from "+row.dial, func(t *testing.T) {
			at := netip.MustParseAddrPort(row.listen)
			here, there := has(at.Addr().String()), has(row.dial)
			balanced(t)
			if !here {
				refused(t, at)
				return
			}
			_, bound := listen(t, at)
			fd, done, err := sys.DialTCP(netip.AddrPortFrom(netip.MustParseAddr(row.dial), bound.Port()))
			if err == nil {
				hold(t, fd)
				if !done {
					polled(t, fd, unix.POLLOUT)
				}
				err = sys.SocketError(fd)
			}
			switch {
			case !there:
				require.Contains(t, absent, err)
			case row.reached:
				require.NoError(t, err)
			default:
				require.Equal(t, unix.ECONNREFUSED, err)
			}
		})
	}
	_, err := sys.JoinTCP(netip.AddrPort{}, 0)
	require.Equal(t, unix.EINVAL, err)
}

func TestFileThatIsNoSocketIsNotTouched(t *testing.T) {
	balanced(t)
	dir := folder(t)
	live, file, link := filepath.Join(dir, "live"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	l, err := sys.ListenUnix(live, 0, nil)
	require.NoError(t, err)
	require.NoError(t, sys.Close(l))
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	require.NoError(t, os.Symlink(live, link))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	for _, name := range []string{"file", "link", "dir"} {
		_, err := sys.ListenUnix(filepath.Join(dir, name), 0, nil)
		require.Equal(t, unix.ENOTSOCK, err, name)
	}
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(content))
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, live, to)
}

func TestUnlinkRemovesOnlyAnUnusedSocket(t *testing.T) {
	balanced(t)
	dir := folder(t)
	path, file := filepath.Join(dir, "s"), filepath.Join(dir, "file")
	l, err := sys.ListenUnix(path, 0, nil)
	require.NoError(t, err)
	require.NoError(t, sys.Unlink(path))
	require.FileExists(t, path, "a socket listens")
	require.NoError(t, sys.Close(l))
	require.NoError(t, sys.Unlink(path))
	require.NoFileExists(t, path)
	require.Equal(t, unix.ENOENT, sys.Unlink(path))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, sys.Unlink(file))
	require.FileExists(t, file)
	require.NoError(t, sys.Unlink(""))
}

func TestPathsThatCannotBe(t *testing.T) {
	balanced(t)
	dir := folder(t)
	_, err := sys.ListenUnix(filepath.Join(dir, strings.Repeat("x", 200)), 0, nil)
	require.Equal(t, unix.ENAMETOOLONG, err)
	_, err = sys.ListenUnix("", 0, nil)
	require.Equal(t, unix.EINVAL, err)
	_, err = sys.ListenUnix(filepath.Join(dir, "no", "such"), 0, nil)
	require.Equal(t, unix.ENOENT, err)
	longest := len(unix.RawSockaddrUnix{}.Path) - 1
	l, err := sys.ListenUnix(filepath.Join(dir, strings.Repeat("x", longest-len(dir)-1)), 0, nil)
	require.NoError(t, err)
	require.Len(t, sys.LocalAddr(l).String(), longest)
	hold(t, l)
}

// All find the same stale socket; without the lock a late one would remove the path of a winner.
func TestOfProgramsThatFindOneStaleSocketOneListens(t *testing.T) {
	balanced(t)
	path := filepath.Join(folder(t), "s")
	for range 100 / staleProbes { // which take time
		won := together(4, func() (int, error) { return sys.ListenUnix(path, 0, nil) })
		require.Len(t, won, 1)
		fd, _, err := sys.DialUnix(path)
		require.NoError(t, err, "the winner has the path")
		require.NoError(t, sys.Close(fd))
		require.NoError(t, sys.Close(won[0]))
	}
}

func TestALockOfAnotherProcessDelaysAndDoesNotPrevent(t *testing.T) {
	tier.Need(t, tier.Full, "waits a second")
	balanced(t)
	dir := folder(t)
	lock, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	hold(t, lock)
	require.NoError(t, unix.Flock(lock, unix.LOCK_EX))
	began := time.Now()
	l, err := sys.ListenUnix(filepath.Join(dir, "s"), 0, nil)
	require.NoError(t, err)
	hold(t, l)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
}

func TestASocketFileThatCannotBePreparedIsRemoved(t *testing.T) {
	balanced(t)
	path := filepath.Join(folder(t), "s")
	_, err := sys.ListenUnix(path, 0, func(at string) error {
		require.Equal(t, path, at)
		require.FileExists(t, path)
		_, _, err := sys.DialUnix(path)
		require.Equal(t, unix.ECONNREFUSED, err, "nobody can connect yet")
		return unix.EPERM
	})
	require.Equal(t, unix.EPERM, err)
	require.NoFileExists(t, path)
}
