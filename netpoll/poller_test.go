//go:build linux || darwin || freebsd || netbsd || openbsd

package netpoll

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAnEdgeIsReportedOnce(t *testing.T) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			balanced(t)
			p := newPoller(t)
			client, server := pair(t)
			hold(t, client)
			hold(t, server)
			require.NoError(t, p.Add(server, 7, In|Out))
			require.Zero(t, await(t, p, 7, Out)&(PeerClosed|Error))
			quiet(t, p)
			say(t, client, "one")
			await(t, p, 7, In)
			quiet(t, p) // unread, and yet no news
			say(t, client, "two")
			await(t, p, 7, In)
			require.Equal(t, "onetwo", hear(t, server))
			_, err := sys.Receive(server, make([]byte, 1))
			require.Equal(t, unix.EAGAIN, err)
		})
	}
}

func TestWhatIsReadyBeforeAddIsReported(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	client, server := tcpPair(t)
	hold(t, server)
	say(t, client, "early")
	require.NoError(t, sys.Close(client))
	polled(t, server, unix.POLLIN)
	require.NoError(t, p.Add(server, 1, In|Out))
	await(t, p, 1, In|PeerClosed)
}

func TestPeerClosedIsReported(t *testing.T) {
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			balanced(t)
			p := newPoller(t)
			client, server := pair(t)
			hold(t, client)
			hold(t, server)
			require.NoError(t, p.Add(server, 1, In|Out))
			say(t, client, "last words")
			require.NoError(t, sys.CloseWrite(client))
			require.Zero(t, await(t, p, 1, In|PeerClosed)&Error, "half of it is still open")
			require.Equal(t, "last words", string(hearAll(t, server)))
			say(t, server, "answer")
			require.Equal(t, "answer", hear(t, client))
		})
	}
}

func TestResetIsReportedAsError(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	client, server := tcpPair(t)
	hold(t, server)
	require.NoError(t, p.Add(server, 1, In|Out))
	say(t, client, "lost")
	require.NoError(t, sys.Reset(client))
	await(t, p, 1, In|Error)
	require.Equal(t, unix.ECONNRESET, sys.SocketError(server))
	require.NoError(t, sys.SocketError(server), "taken")
}

func TestConnectInProgressIsDecidedByOutOrError(t *testing.T) {
	t.Run("accepted", func(t *testing.T) {
		balanced(t)
		p := newPoller(t)
		_, addr := listen(t, loopback)
		fd, _, err := sys.DialTCP(addr)
		require.NoError(t, err)
		hold(t, fd)
		require.NoError(t, p.Add(fd, 1, In|Out))
		require.Zero(t, await(t, p, 1, Out)&Error)
		require.NoError(t, sys.SocketError(fd))
	})
	t.Run("refused", func(t *testing.T) {
		balanced(t)
		p := newPoller(t)
		l, addr := listen(t, loopback)
		sibling, err := sys.JoinTCP(addr, 0) // the port stays taken, so no other socket gets it
		require.NoError(t, err)
		require.NoError(t, unix.Shutdown(l, unix.SHUT_RDWR))
		require.NoError(t, unix.Shutdown(sibling, unix.SHUT_RDWR))
		hold(t, sibling)
		fd, done, err := sys.DialTCP(addr)
		require.NoError(t, err)
		require.False(t, done)
		hold(t, fd)
		require.NoError(t, p.Add(fd, 1, In|Out))
		await(t, p, 1, Error)
		require.Equal(t, unix.ECONNREFUSED, sys.SocketError(fd))
	})
}

// A receive stops at the mark of out-of-band data, with more behind: what a short read would be taken
// for, if Priority or Partial did not say so.
func TestShortReadAtTheMarkIsAnnounced(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	client, server := tcpPair(t)
	hold(t, client)
	hold(t, server)
	require.NoError(t, p.Add(server, 1, In|Out))
	await(t, p, 1, Out)
	say(t, client, "before")
	require.NoError(t, unix.Send(client, []byte("!"), unix.MSG_OOB))
	say(t, client, "behind")
	await(t, p, 1, In|marked)
	buf := make([]byte, 64)
	n, err := sys.Receive(server, buf)
	require.NoError(t, err)
	require.Equal(t, "before", string(buf[:n]))
	polled(t, server, unix.POLLIN)
	n, err = sys.Receive(server, buf)
	if err == unix.EAGAIN { // a signal was pending at the mark: receive again, see the package's rule
		n, err = sys.Receive(server, buf)
	}
	require.NoError(t, err)
	require.Equal(t, "behind", string(buf[:n]))
}

func TestInterruptBeforeWaitIsNotLost(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	events := make([]Event, 1)
	for range 3 { // each is a new edge, though none is ever read
		p.Interrupt()
		n, err := p.Wait(events, -1)
		require.NoError(t, err)
		require.Zero(t, n, "its event is not the caller's")
	}
}

// A late Interrupt must not write its eight bytes into a connection that has got the number of the closed descriptor.
func TestInterruptWhileClosingHitsNoOtherDescriptor(t *testing.T) {
	balanced(t)
	for range 100 {
		p, err := sys.OpenPoller()
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					p.Interrupt()
				}
			})
		}
		require.NoError(t, p.Close())
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		wg.Wait()
		for _, fd := range pair {
			require.NoError(t, unix.SetNonblock(fd, true))
			_, err := sys.Receive(fd, make([]byte, 8))
			require.Equal(t, unix.EAGAIN, err)
		}
		require.NoError(t, sys.Close(pair[0]))
		require.NoError(t, sys.Close(pair[1]))
	}
}

func TestCallsOfAClosedPollerReturnEBADF(t *testing.T) {
	balanced(t)
	p, err := sys.OpenPoller()
	require.NoError(t, err)
	require.NoError(t, p.Close())
	require.Equal(t, unix.EBADF, p.Close())
	require.Equal(t, unix.EBADF, p.Add(0, 1, In|Out))
	_, err = p.Wait(make([]Event, 1), 0)
	require.Equal(t, unix.EBADF, err)
	p.Interrupt()
}

func TestMisuseIsRefused(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	l, _ := listen(t, loopback)
	require.PanicsWithValue(t, "netpoll: the tag ^uint64(0) belongs to the interrupt", func() { _ = p.Add(l, reserved, In) })
	require.PanicsWithValue(t, "netpoll: Wait needs room for at least one event", func() { _, _ = p.Wait(nil, 0) })
	require.Equal(t, unix.EINVAL, p.Add(l, 1, Out|Shared))
	require.Equal(t, unix.EBADF, p.Add(-1, 1, In|Out))
}
