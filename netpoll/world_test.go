//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var sys System

// patience bounds each wait for an event. When it has passed, something hangs.
const patience = 2 * time.Minute

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// descriptors lists the open ones of the first 1024.
func descriptors() (open []int) {
	for fd := range 1024 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			open = append(open, fd)
		}
	}
	return open
}

// balanced fails the test if it does not leave the descriptors as it found them. It comes first in a
// test, so that it judges last.
func balanced(t testing.TB) {
	before := descriptors()
	t.Cleanup(func() { require.Equal(t, before, descriptors(), "descriptors after and before") })
}

// hold closes fd when the test ends.
func hold(t testing.TB, fd int) int {
	t.Cleanup(func() { require.NoError(t, sys.Close(fd)) })
	return fd
}

func newPoller(t testing.TB) *Poller {
	p, err := sys.OpenPoller()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func folder(t testing.TB) string { // t.TempDir is longer than a socket's path may be, on some systems
	dir, err := os.MkdirTemp("", "np")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func listen(t testing.TB, addr netip.AddrPort) (fd int, bound netip.AddrPort) {
	fd, err := sys.ListenTCP(addr, 0)
	require.NoError(t, err)
	return hold(t, fd), addrPort(t, fd)
}

// has reports whether this machine can listen at the IP address: IPv6 may be switched off, or have no ::1.
func has(ip string) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

// absent is what systems say of an address that they do not have.
var absent = []error{unix.EADDRNOTAVAIL, unix.EAFNOSUPPORT, unix.ENETUNREACH, unix.EHOSTUNREACH}

// refused wants addr to be one that this machine does not have.
func refused(t testing.TB, addr netip.AddrPort) {
	_, err := sys.ListenTCP(addr, 0)
	require.Contains(t, absent, err)
}

func addrPort(t testing.TB, fd int) netip.AddrPort {
	a := sys.LocalAddr(fd)
	require.NotNil(t, a)
	return netip.MustParseAddrPort(a.String())
}

// polled waits with poll(2), which knows nothing of edges.
func polled(t testing.TB, fd int, events int16) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
	n, err := unix.Poll(fds, int(patience/time.Millisecond))
	for err == unix.EINTR {
		n, err = unix.Poll(fds, int(patience/time.Millisecond))
	}
	require.NoError(t, err)
	require.Equal(t, 1, n, "nothing came")
}

func accepted(t testing.TB, listener int) int {
	polled(t, listener, unix.POLLIN)
	fd, err := sys.Accept(listener)
	require.NoError(t, err)
	return fd
}

func dialled(t testing.TB, addr netip.AddrPort) int {
	fd, done, err := sys.DialTCP(addr)
	require.NoError(t, err)
	if !done {
		polled(t, fd, unix.POLLOUT)
		require.NoError(t, sys.SocketError(fd))
	}
	return fd
}

// tcpPair is a connection; the caller owns both ends.
func tcpPair(t testing.TB) (client, server int) {
	l, err := sys.ListenTCP(loopback, 0)
	require.NoError(t, err)
	client = dialled(t, addrPort(t, l))
	server = accepted(t, l)
	require.NoError(t, sys.Close(l))
	return client, server
}

func unixPair(t testing.TB) (client, server int) {
	path := filepath.Join(folder(t), "s")
	l, err := sys.ListenUnix(path, 0, nil)
	require.NoError(t, err)
	client, done, err := sys.DialUnix(path)
	require.NoError(t, err)
	require.True(t, done)
	server = accepted(t, l)
	require.NoError(t, sys.Close(l))
	return client, server
}

var pairs = map[string]func(testing.TB) (client, server int){"tcp": tcpPair, "unix": unixPair}

func say(t testing.TB, fd int, text string) {
	n, err := sys.Send(fd, nil, []byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}

// hear receives once, waiting for there to be something.
func hear(t testing.TB, fd int) string {
	polled(t, fd, unix.POLLIN)
	var buf [4096]byte
	n, err := sys.Receive(fd, buf[:])
	require.NoError(t, err)
	return string(buf[:n])
}

// hearAll receives until the end of the stream.
func hearAll(t testing.TB, fd int) (text []byte) {
	buf := make([]byte, 1<<16)
	for {
		polled(t, fd, unix.POLLIN)
		n, err := sys.Receive(fd, buf)
		if errors.Is(err, io.EOF) {
			return text
		}
		require.NoError(t, err)
		text = append(text, buf[:n]...)
	}
}

// await waits until everything wanted has been reported for tag, and returns all that was.
func await(t testing.TB, p *Poller, tag uint64, wanted Ready) (got Ready) {
	events := make([]Event, 8)
	for end := time.Now().Add(patience); got&wanted != wanted; {
		require.True(t, time.Now().Before(end), "tag %x: %v of %v", tag, got, wanted)
		n, err := p.Wait(events, time.Second)
		require.NoError(t, err)
		for _, e := range events[:n] {
			require.Equal(t, tag, e.Tag)
			got |= e.Ready
		}
	}
	return got
}

// quiet requires that nothing is reported.
func quiet(t testing.TB, p *Poller) {
	events := make([]Event, 8)
	n, err := p.Wait(events, 0)
	require.NoError(t, err)
	require.Empty(t, events[:n])
}
