package netpoll

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestKeepAliveTimes(t *testing.T) {
	balanced(t)
	client, server := tcpPair(t)
	hold(t, client)
	hold(t, server)
	for idle, seconds := range map[time.Duration]int{1: 1, time.Second: 1, 1500 * time.Millisecond: 2, time.Minute: 60} {
		require.NoError(t, sys.SetKeepAlive(client, idle))
		for _, option := range []int{unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL} {
			v, err := unix.GetsockoptInt(client, unix.IPPROTO_TCP, option)
			require.NoError(t, err)
			require.Equal(t, seconds, v)
		}
	}
	require.Equal(t, unix.EINVAL, sys.SetKeepAlive(client, 24*time.Hour), "the kernel takes 32767 s")
}

// socket(7): Linux doubles what is asked for.
func TestBuffersHaveTheSizesThatWereSet(t *testing.T) {
	balanced(t)
	for _, b := range [][2]int{{20000, 0}, {0, 30000}, {40000, 50000}} {
		sizes := func(fd int) [2]int {
			receive, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
			require.NoError(t, err)
			send, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
			require.NoError(t, err)
			return [2]int{receive, send}
		}
		client, server := unixPair(t)
		hold(t, client)
		hold(t, server)
		want := sizes(client)
		for i, n := range b {
			if n > 0 {
				want[i] = 2 * n
			}
		}
		require.NoError(t, sys.SetBuffers(client, b[0], b[1]))
		require.Equal(t, want, sizes(client))
	}
}

func TestBacklogBounds(t *testing.T) {
	require.Equal(t, maxBacklog, limit(0))
	require.Equal(t, maxBacklog, limit(-1))
	require.Equal(t, 5, limit(5))
}

func TestHotCallsDoNotAllocate(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	l, addr := listen(t, loopback)
	client, server := unixPair(t) // no delayed acknowledgements
	hold(t, client)
	hold(t, server)
	require.NoError(t, p.Add(server, 1, In|Out))
	head, body, buf := []byte("head"), []byte("body"), make([]byte, 64)
	events := make([]Event, 4)
	b := openBatch(t, 2)
	batch := []Call{{FD: client, Send: true, P: body}, {FD: server, P: buf}}
	for range 101 { // AllocsPerRun makes one call more than it is asked for
		hold(t, dialled(t, addr))
	}
	taken := make([]int, 0, 101)
	for name, call := range map[string]func(){
		"accept":      func() { fd, _ := sys.Accept(l); taken = append(taken, fd) },
		"round trip":  func() { _, _ = sys.Send(client, nil, body); _, _ = sys.Receive(server, buf) },
		"two parts":   func() { _, _ = sys.Send(client, head, body); _, _ = sys.Receive(server, buf) },
		"batch":       func() { b.Do(batch) },
		"nothing yet": func() { _, _ = sys.Receive(client, buf) },
		"poll":        func() { _, _ = p.Wait(events, 0) },
		"wait":        func() { _, _ = p.Wait(events, time.Microsecond) },
		"interrupt":   func() { p.Interrupt(); _, _ = p.Wait(events, -1) },
		"event":       func() { _, _ = sys.Send(client, nil, body); _, _ = p.Wait(events, -1) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, call), name)
	}
	require.Len(t, taken, 101)
	for _, fd := range taken {
		require.NoError(t, sys.Close(fd))
	}
}

// What was broken: getpeername(2) no longer knows the peer of a connection that was reset, so no log line named it.
func TestThePeerIsKnownAfterAReset(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			if !has(ip) {
				t.Skip("the machine has no such address")
			}
			balanced(t)
			l, addr := listen(t, netip.AddrPortFrom(netip.MustParseAddr(ip), 0))
			client := dialled(t, addr)
			server := hold(t, accepted(t, l))
			at := sys.LocalAddr(client)
			require.NoError(t, sys.Reset(client))
			polled(t, server, unix.POLLIN)
			_, err := sys.Receive(server, make([]byte, 64))
			require.Equal(t, unix.ECONNRESET, err)
			_, err = unix.Getpeername(server)
			require.Equal(t, unix.ENOTCONN, err)
			require.Equal(t, at, sys.PeerAddr(server))
		})
	}
}
