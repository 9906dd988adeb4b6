package monitor_test

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/monitor"
)

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

// open returns an acceptor of l.
func open(l *servertest.Stepped, limiter *engine.Limiter) engine.Acceptor {
	l.T.Helper()
	a, err := l.Engine().Listen(engine.ListenOptions{Addr: loopback, Limiter: limiter})
	require.NoError(l.T, err)
	return a
}

// next steps until Accept does better than ErrWouldBlock.
func next(l *servertest.Stepped, a engine.Acceptor) (k monitor.Stream, err error) {
	l.T.Helper()
	l.Until("a connection, or an error", func() bool {
		k, err = a.Accept()
		return err != monitor.ErrWouldBlock
	})
	return k, err
}

// After Stop come the connections that are in the backlog, as far as there are places and descriptors, up to a bound.
func TestAStoppedAcceptorGivesWhatHasArrived(t *testing.T) {
	defer func(before int) { *monitor.LastAccepts = before }(*monitor.LastAccepts)
	*monitor.LastAccepts = 3
	for name, test := range map[string]struct {
		places, knocks, given int
		short                 syscall.Errno
	}{
		"none":                  {},
		"some":                  {knocks: 2, given: 2},
		"more than the bound":   {knocks: 4, given: 3},
		"more than places":      {places: 1, knocks: 2, given: 1},
		"without a descriptor":  {knocks: 2, short: syscall.EMFILE},
		"a filter denies calls": {knocks: 2, short: syscall.EPERM},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			a := open(l, engine.NewLimiter(test.places))
			for range test.knocks {
				servertest.Dial(t, a.Addr())
			}
			l.OS.Fail = func(call string, _ int) error {
				if call == "accept" && test.short != 0 {
					return test.short
				}
				return nil
			}
			woken := 0
			l.S.Spawn(servertest.Waits(func(t *act.Task) { a.Await(t.Waker()) }, &woken))
			l.Turn(func(*act.Task) { a.Stop(false) })
			l.Until("woken by Stop", func() bool { return woken == 1 })
			given := 0
			for {
				k, err := a.Accept()
				if err == net.ErrClosed {
					break
				}
				if err != nil {
					require.ErrorIs(t, err, engine.ErrConnAborted)
					continue
				}
				given++
				defer k.Abort()
			}
			require.Equal(t, test.given, given)
			require.NoError(t, a.Close())
		})
	}
}

func TestASocketThatCannotBeWatchedIsClosed(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.Engine()
	l.OS.Fail = servertest.Failing("add", syscall.ENOMEM)
	path := filepath.Join(servertest.ShortDir(t), "s")
	for _, addr := range []net.Addr{loopback, &net.UnixAddr{Name: path, Net: "unix"}} {
		_, err := l.Engine().Listen(engine.ListenOptions{Addr: addr})
		require.ErrorIs(t, err, syscall.ENOMEM)
	}
	require.NoFileExists(t, path)
}

// What was broken: an acceptor that asked again and again, as a timer made it, was noted each time.
func TestAnAcceptorWithoutADescriptorIsNotedOnceAndWokenByAnyClose(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a := open(l, nil)
	stream, _ := l.Stream("tcp")
	servertest.Dial(t, a.Addr())
	l.OS.Fail = servertest.Failing("accept", syscall.EMFILE)
	_, err := next(l, a)
	require.ErrorIs(t, err, engine.ErrShortage)
	require.ErrorIs(t, err, syscall.EMFILE)
	woken := 0
	l.S.Spawn(servertest.Waits(func(t *act.Task) {
		for range 100 {
			a.Await(t.Waker())
		}
	}, &woken))
	l.For(0)
	require.Equal(t, 1, monitor.Starving(l.Engine()))
	require.Zero(t, woken)
	stream.Abort()
	l.Until("woken", func() bool { return woken == 1 })
	require.Zero(t, monitor.Starving(l.Engine()))
	require.NoError(t, a.Close())
}

// nameless is an OS that does not know its own addresses: a filter of system calls may refuse getsockname.
type nameless struct{ *servertest.OS }

func (nameless) LocalAddr(int) net.Addr { return nil }

// on returns a fixture whose engine works on os.
func on(t *testing.T, os engine.OS) *servertest.Stepped {
	t.Helper()
	servertest.CheckDescriptors(t)
	l := &servertest.Stepped{T: t, S: act.New(act.Config{})}
	engine.Below.Put(l.S, os)
	t.Cleanup(func() { require.NoError(t, l.S.Close()) })
	l.Engine()
	return l
}

func TestAnAcceptorWhoseAddressTheSystemDoesNotKnowIsRefused(t *testing.T) {
	l := on(t, nameless{&servertest.OS{}})
	_, err := l.Engine().Listen(engine.ListenOptions{Addr: loopback})
	require.EqualError(t, err, "monitor: the kernel does not say where a socket listens (getsockname)")
}

func TestClosingAnAcceptorWakesItsTask(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a := open(l, nil)
	at := a.Addr().String()
	woken := 0
	l.S.Spawn(servertest.Waits(func(t *act.Task) { a.Await(t.Waker()) }, &woken))
	l.For(0)
	require.NoError(t, a.Close())
	l.Until("woken", func() bool { return woken == 1 })
	_, err := a.Accept()
	require.Equal(t, errClosed, err)
	require.Equal(t, at, a.Addr().String(), "still known")
	_, err = a.Descriptor()
	require.Equal(t, errClosed, err)
	require.NoError(t, a.Close(), "again")
	require.Equal(t, 1, l.OS.Count("close"))
	l.S.Spawn(servertest.Waits(func(t *act.Task) { a.Await(t.Waker()) }, &woken))
	l.Until("at once", func() bool { return woken == 2 })
	_, err = net.Dial("tcp", at)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestASharedSocketStaysOpenForTheOthers(t *testing.T) {
	path := filepath.Join(servertest.ShortDir(t), "s")
	l := servertest.New(t, act.Config{})
	l.Engine() // each fixture counts descriptors from its beginning
	other := servertest.New(t, act.Config{})
	o := engine.ListenOptions{Addr: &net.UnixAddr{Name: path, Net: "unix"}}
	first, err := l.Engine().Listen(o)
	require.NoError(t, err)
	o.Sibling = first
	second, err := other.Engine().Listen(o)
	require.NoError(t, err)
	require.Equal(t, path, second.Addr().String())
	servertest.Dial(t, first.Addr())
	k, err := next(other, second) // looking at the same time as the first would
	require.NoError(t, err)
	k.Abort()
	require.NoError(t, first.Close())
	require.Zero(t, l.OS.Count("close"))
	require.FileExists(t, path)
	require.NoError(t, second.Close())
	require.NoFileExists(t, path)
	_, err = other.Engine().Listen(o)
	require.Equal(t, errClosed, err, "there is nothing left to join")
}
