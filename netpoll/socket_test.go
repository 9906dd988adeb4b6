//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A full socket takes a part, also one that ends inside head or body, and no byte is lost or doubled. EAGAIN is returned only when
// nothing was taken, and poll(2) reports when there is room again.
func TestSendsReturnHowMuchWasTaken(t *testing.T) {
	f, data := file(t, 16<<20) // more than the system takes of what nobody reads
	for call, send := range map[string]func(fd, sent int) (int, error){
		"send": func(fd, sent int) (int, error) {
			rest := data[sent:min(sent+300_000, len(data))]
			return sys.Send(fd, rest[:len(rest)/3], rest[len(rest)/3:])
		},
		"sendfile": func(fd, sent int) (int, error) { return sys.SendFile(fd, f, int64(sent), len(data)-sent) },
	} {
		for network, pair := range pairs {
			t.Run(call+", "+network, func(t *testing.T) {
				balanced(t)
				client, server := pair(t)
				hold(t, server)
				heard := make(chan []byte)
				full := 0
				for sent := 0; sent < len(data); {
					n, err := send(client, sent)
					if err == unix.EAGAIN {
						if full++; full == 1 {
							go func() { heard <- drain(server) }()
						}
						polled(t, client, unix.POLLOUT)
						continue
					}
					if sent == 0 && call == "sendfile" && (err == unix.EINVAL || errors.Is(err, errors.ErrUnsupported)) {
						require.NoError(t, sys.Close(client))
						t.Skip("files cannot be sent here")
					}
					require.NoError(t, err)
					require.Positive(t, n)
					sent += n
				}
				require.NoError(t, sys.Close(client))
				require.Positive(t, full, "never was full: not the case this test is about")
				require.True(t, bytes.Equal(data, <-heard))
			})
		}
	}
}

// Darwin refuses sends and receives of more than INT_MAX bytes.
func TestSendAndReceiveOfMoreThanTwoGiB(t *testing.T) {
	balanced(t)
	size := uint64(math.MaxInt32 + 2)
	if size > math.MaxInt {
		t.Skip("32 bits: there is no such buffer")
	}
	huge, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Skip("no address space: ", err)
	}
	defer unix.Munmap(huge)
	client, server := tcpPair(t)
	hold(t, client)
	hold(t, server)
	for _, part := range []struct{ head, body []byte }{{nil, huge}, {huge, nil}, {huge[:1], huge}, {huge, huge[:1]}} {
		n, err := sys.Send(client, part.head, part.body)
		require.NoError(t, err)
		require.Positive(t, n)
		for heard := 0; heard < n; {
			polled(t, server, unix.POLLIN)
			m, err := sys.Receive(server, huge)
			require.NoError(t, err)
			heard += m
		}
	}
}

func drain(fd int) (all []byte) {
	buf := make([]byte, 1<<16)
	for {
		n, err := sys.Receive(fd, buf)
		switch err {
		case nil:
			all = append(all, buf[:n]...)
		case unix.EAGAIN:
			time.Sleep(time.Millisecond)
		default: // io.EOF, or the bytes will not agree
			return all
		}
	}
}

func TestReceiveKnowsEmptyFromEnded(t *testing.T) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			balanced(t)
			client, server := pair(t)
			hold(t, client)
			hold(t, server)
			buf := make([]byte, 8)
			n, err := sys.Receive(server, buf)
			require.Equal(t, 0, n)
			require.Equal(t, unix.EAGAIN, err)
			n, err = sys.Receive(server, nil)
			require.Equal(t, 0, n)
			require.NoError(t, err, "no room is not the end")
			require.NoError(t, sys.CloseWrite(client))
			polled(t, server, unix.POLLIN)
			n, err = sys.Receive(server, buf)
			require.Equal(t, 0, n)
			require.Equal(t, io.EOF, err)
		})
	}
}

// Every descriptor is non-blocking and does not reach the programs we start.
func TestDescriptorsDoNotBlockNorLeak(t *testing.T) {
	balanced(t)
	before := descriptors()
	newPoller(t)
	for _, pair := range pairs {
		client, server := pair(t)
		hold(t, client)
		hold(t, server)
		for _, fd := range []int{client, server} {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			require.NoError(t, err)
			require.NotZero(t, flags&unix.O_NONBLOCK)
		}
	}
	listen(t, loopback)
	path := filepath.Join(folder(t), "s")
	l, err := sys.ListenUnix(path, 0, nil)
	require.NoError(t, err)
	hold(t, l)
	ours := slices.DeleteFunc(descriptors(), func(fd int) bool { return slices.Contains(before, fd) })
	require.GreaterOrEqual(t, len(ours), 7, "two listeners, two pairs and a poller")
	for _, fd := range ours {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC, "descriptor %d", fd)
	}
}

func TestOptionsReachTheSocket(t *testing.T) {
	balanced(t)
	client, server := tcpPair(t)
	hold(t, client)
	hold(t, server)
	option := func(level, name int) int {
		v, err := unix.GetsockoptInt(client, level, name)
		require.NoError(t, err)
		return v
	}
	require.Zero(t, option(unix.IPPROTO_TCP, unix.TCP_NODELAY))
	require.NoError(t, sys.SetNoDelay(client, true))
	require.NotZero(t, option(unix.IPPROTO_TCP, unix.TCP_NODELAY))
	require.NoError(t, sys.SetNoDelay(client, false))
	require.Zero(t, option(unix.IPPROTO_TCP, unix.TCP_NODELAY))

	require.Zero(t, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
	require.NoError(t, sys.SetKeepAlive(client, 90*time.Second))
	require.NotZero(t, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
	require.NoError(t, sys.SetKeepAlive(client, 0))
	require.Zero(t, option(unix.SOL_SOCKET, unix.SO_KEEPALIVE))
}

func TestAddresses(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			here := has(ip)
			balanced(t)
			if !here {
				refused(t, netip.AddrPortFrom(netip.MustParseAddr(ip), 0))
				return
			}
			l, addr := listen(t, netip.AddrPortFrom(netip.MustParseAddr(ip), 0))
			require.Equal(t, ip, addr.Addr().String())
			require.NotZero(t, addr.Port())
			client := hold(t, dialled(t, addr))
			server := hold(t, accepted(t, l))
			require.Equal(t, sys.LocalAddr(client), sys.PeerAddr(server))
			require.Equal(t, sys.PeerAddr(client), sys.LocalAddr(server))
			require.Equal(t, addr.String(), sys.PeerAddr(client).(*net.TCPAddr).String())
			require.Nil(t, sys.PeerAddr(l))
			require.Equal(t, addr.String(), sys.PeerAddrPort(client).String())
			require.Zero(t, sys.PeerAddrPort(l))
		})
	}
	t.Run("unix", func(t *testing.T) {
		balanced(t)
		path := filepath.Join(folder(t), "s")
		l, err := sys.ListenUnix(path, 0, nil)
		require.NoError(t, err)
		hold(t, l)
		fd, _, err := sys.DialUnix(path)
		require.NoError(t, err)
		hold(t, fd)
		require.Equal(t, &net.UnixAddr{Name: path, Net: "unix"}, sys.LocalAddr(l))
		require.Equal(t, &net.UnixAddr{Name: path, Net: "unix"}, sys.PeerAddr(fd))
		require.Equal(t, &net.UnixAddr{Net: "unix"}, sys.LocalAddr(fd))
		require.Zero(t, sys.PeerAddrPort(fd))
	})
}

func TestZones(t *testing.T) {
	all, err := net.Interfaces()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, zone := range []string{all[0].Name, "4711"} {
		id, err := zoneID(zone)
		require.NoError(t, err)
		require.Equal(t, zone, zoneName(id))
	}
	require.Equal(t, "", zoneName(0))
	_, err = zoneID("no such interface")
	require.Equal(t, unix.ENODEV, err)
	_, _, err = sys.DialTCP(netip.MustParseAddrPort("[fe80::1%nowhere0]:80"))
	require.Equal(t, unix.ENODEV, err)
}
