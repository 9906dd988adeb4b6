package monitor_test

import (
	"net"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/monitor"
)

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// open returns a port of l's own.
func open(l *servertest.Stepped) *monitor.Port {
	l.T.Helper()
	fd, err := l.OS.ListenTCP(loopback, netpoll.ListenOptions{First: true})
	require.NoError(l.T, err)
	port, err := l.Engine().Port(fd, false)
	require.NoError(l.T, err)
	return port
}

// knock connects to a port for the length of the test.
func knock(t testing.TB, at net.Addr) net.Conn {
	t.Helper()
	c, err := net.DialTimeout(at.Network(), at.String(), servertest.Timeout)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAPortGivesEachConnectionOnce(t *testing.T) {
	l := servertest.New(t, act.Config{})
	port := open(l)
	_, err := port.Accept()
	require.Equal(t, monitor.ErrWouldBlock, err)
	require.Zero(t, l.OS.Count("accept"), "nothing was reported, so nothing is asked")
	woken := 0
	l.S.Spawn(waits(func(t *act.Task) { port.Await(t.Waker()) }, &woken))
	l.For(2 * time.Millisecond)
	require.Zero(t, woken)
	for range 3 {
		knock(t, port.Addr())
	}
	l.Until("a knock", func() bool { return woken == 1 })
	for range 3 {
		fd, err := port.Accept()
		require.NoError(t, err)
		require.NoError(t, l.OS.Close(fd))
	}
	_, err = port.Accept()
	require.Equal(t, monitor.ErrWouldBlock, err)
	require.Equal(t, 4, l.OS.Count("accept"))
	require.NoError(t, port.Close())
}

func TestAClosedPortSaysSoAndWakesWhoWaits(t *testing.T) {
	l := servertest.New(t, act.Config{})
	port := open(l)
	at := port.Addr().String()
	woken := 0
	l.S.Spawn(waits(func(t *act.Task) { port.Await(t.Waker()) }, &woken))
	l.For(2 * time.Millisecond)
	require.NoError(t, port.Close())
	l.Until("woken", func() bool { return woken == 1 })
	_, err := port.Accept()
	require.Equal(t, errClosed, err)
	require.Nil(t, port.Addr())
	require.NoError(t, port.Close(), "again")
	require.Equal(t, 1, l.OS.Count("close"))
	l.S.Spawn(waits(func(t *act.Task) { port.Await(t.Waker()) }, &woken))
	l.Until("at once", func() bool { return woken == 2 })
	_, err = net.Dial("tcp", at)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestASharedPortStaysOpenForTheOthers(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "s")
	a := servertest.New(t, act.Config{})
	a.Engine() // each lab counts descriptors from its beginning
	b := servertest.New(t, act.Config{})
	fd, err := a.OS.ListenUnix(path, netpoll.ListenOptions{})
	require.NoError(t, err)
	first, err := a.Engine().Port(fd, true)
	require.NoError(t, err)
	second, err := b.Engine().Port(fd, true)
	require.NoError(t, err)
	knock(t, first.Addr())
	accepted := -1
	b.Until("the second has it", func() bool { // looking at the same time as the first would
		accepted, err = second.Accept()
		return err == nil
	})
	require.NoError(t, b.OS.Close(accepted))
	require.NoError(t, first.Close())
	require.Zero(t, a.OS.Count("close"))
	require.NotNil(t, second.Addr())
	require.NoError(t, second.Close())
	require.NoError(t, a.OS.Close(fd))
}

func TestAPortThatCannotBeWatchedIsClosedUnlessItIsShared(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.Engine()
	l.OS.Fail = func(call string, _ int) error {
		if call == "add" {
			return syscall.ENOMEM
		}
		return nil
	}
	for _, shared := range []bool{false, true} {
		fd, err := l.OS.ListenTCP(loopback, netpoll.ListenOptions{First: true})
		require.NoError(t, err)
		_, err = l.Engine().Port(fd, shared)
		require.ErrorIs(t, err, syscall.ENOMEM)
		if shared {
			require.NoError(t, l.OS.Close(fd))
		}
	}
}

// What was broken: whoever asked again and again, as a timer made it, was noted each time.
func TestWhoWaitsForADescriptorIsNotedOnceAndWokenByAnyClose(t *testing.T) {
	l := servertest.New(t, act.Config{})
	port := open(l)
	stream, _ := l.Stream("tcp", nil)
	woken := 0
	l.S.Spawn(waits(func(t *act.Task) {
		for range 100 {
			port.AwaitDescriptor(t.Waker())
		}
	}, &woken))
	l.For(2 * time.Millisecond)
	require.Equal(t, 1, monitor.Starved(l.Engine()))
	require.Zero(t, woken)
	stream.Abort()
	l.Until("woken", func() bool { return woken == 1 })
	require.Zero(t, monitor.Starved(l.Engine()))
	require.NoError(t, port.Close())
}

// decided steps until it is known how a connect went.
func decided(l *servertest.Stepped, d *monitor.Dial) (stream monitor.Stream, err error) {
	l.T.Helper()
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		if stream, err = d.Stream(); err == monitor.ErrWouldBlock {
			d.Await(t.Waker())
			return act.Wait
		}
		return act.Done
	}))
	l.Until("the connect is decided", func() bool { return stream != nil || err != nil && err != monitor.ErrWouldBlock })
	return stream, err
}

func TestADialIsAStreamOrAnError(t *testing.T) {
	l := servertest.New(t, act.Config{})
	source := l.Engine().NewSource("tcp", nil)
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := door.Addr().(*net.TCPAddr).AddrPort()

	dial, err := source.DialTCP(at)
	require.NoError(t, err)
	stream, err := decided(l, dial)
	require.NoError(t, err)
	require.Equal(t, at.String(), stream.PeerAddr().String())
	dial.Close() // it is taken
	_, err = stream.Queued()
	require.NoError(t, err)
	_, err = dial.Stream()
	require.Equal(t, errClosed, err)
	stream.Abort()

	require.NoError(t, door.Close())
	dial, err = source.DialTCP(at)
	if err == nil {
		_, err = decided(l, dial)
	}
	require.Equal(t, syscall.ECONNREFUSED, err)
}

func TestADialClosedOnTheWayIsGone(t *testing.T) {
	l := servertest.New(t, act.Config{})
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = door.Close() }()
	places := monitor.NewAccount(1)
	dial, err := l.Engine().NewSource("tcp", places).DialTCP(door.Addr().(*net.TCPAddr).AddrPort())
	require.NoError(t, err)
	require.Equal(t, 1, places.Open())
	_, err = l.Engine().NewSource("tcp", places).DialTCP(door.Addr().(*net.TCPAddr).AddrPort())
	require.Equal(t, monitor.ErrFull, err, "there is one place, and it is taken")
	dial.Close()
	dial.Close()
	_, err = dial.Stream()
	require.Equal(t, errClosed, err)
	require.Zero(t, places.Open())
	l.Turn(func(t *act.Task) { dial.Await(t.Waker()) })
}

func TestADialOnAUnixSocket(t *testing.T) {
	l := servertest.New(t, act.Config{})
	path := filepath.Join(servertest.ShortDir(t), "s")
	source := l.Engine().NewSource("unix", nil)
	_, err := source.DialUnix(path)
	require.Equal(t, syscall.ENOENT, err)
	door, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer func() { _ = door.Close() }()
	dial, err := source.DialUnix(path)
	require.NoError(t, err)
	stream, err := decided(l, dial)
	require.NoError(t, err)
	stream.Abort()
}
