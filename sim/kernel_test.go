package sim

import (
	"io"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/netpoll"
	"github.com/daimon-go/daimon/internal/readiness"
)

// kernelBench is a world with one server, whose calls the test makes itself. No scheduler runs.
type kernelBench struct {
	t testing.TB
	w *World
	k *kernel
	r *runner
	readiness.OS
}

func newBench(t testing.TB, o Options) *kernelBench {
	w := New(o)
	v := &Server{w: w, name: "server"}
	v.kernel = newKernel(v)
	r := &runner{server: v, w: w, at: -1}
	return &kernelBench{t: t, w: w, k: v.kernel, r: r, OS: v.kernel.forRunner(r)}
}

// pass lets time pass.
func (b *kernelBench) pass(d time.Duration) {
	until := b.w.now + d
	for at, ok := b.w.agenda.next(); ok && at <= until; at, ok = b.w.agenda.next() {
		b.w.now = max(b.w.now, at)
		b.w.agenda.take().fire()
	}
	b.w.now = until
}

// settle lets time pass until nothing is pending.
func (b *kernelBench) settle() {
	for at, ok := b.w.agenda.next(); ok; at, ok = b.w.agenda.next() {
		b.pass(max(0, at-b.w.now))
	}
}

func (b *kernelBench) right() { require.NoError(b.t, b.w.failure) }

// fakeHolder holds an end, as a client does.
type fakeHolder struct {
	told int
	id   uint64
}

func (p *fakeHolder) ready()         { p.told++ }
func (p *fakeHolder) String() string { return "holder" }
func (p *fakeHolder) number() uint64 { return p.id }

var port80 = netip.MustParseAddrPort("10.0.0.1:80")

func (b *kernelBench) listen() int {
	fd, err := b.ListenTCP(port80, netpoll.ListenOptions{First: true})
	require.NoError(b.t, err)
	return fd
}

// dialled connects a fakeHolder to a listener.
func (b *kernelBench) dialled() *end {
	e, err := b.w.net.dialTCP(port80, &fakeHolder{})
	require.NoError(b.t, err)
	b.settle()
	require.NoError(b.t, e.socketError())
	return e
}

func (b *kernelBench) pair() (e *end, fd int) {
	l := b.listen()
	e = b.dialled()
	fd, err := b.Accept(l)
	require.NoError(b.t, err)
	require.NoError(b.t, b.Close(l))
	return e, fd
}

func (b *kernelBench) hear(fd int) (string, error) {
	var p [1 << 10]byte
	n, err := b.Receive(fd, p[:])
	return string(p[:n]), err
}

func TestLowestNumberIsUsedFirst(t *testing.T) {
	b := newBench(t, Options{})
	l := b.listen()
	require.Equal(t, 3, l, "below are the standard ones")
	for want := 4; want < 8; want++ {
		b.dialled()
		fd, err := b.Accept(l)
		require.NoError(t, err)
		require.Equal(t, want, fd)
	}
	require.NoError(t, b.Close(6))
	require.NoError(t, b.Close(4))
	for _, want := range []int{4, 6, 8} {
		b.dialled()
		fd, err := b.Accept(l)
		require.NoError(t, err)
		require.Equal(t, want, fd)
	}
	b.right()
}

func TestNoDescriptorLeft(t *testing.T) {
	b := newBench(t, Options{})
	l := b.listen()
	b.k.limit = 2
	b.dialled()
	b.dialled()
	fd, err := b.Accept(l)
	require.NoError(t, err)
	_, err = b.Accept(l)
	require.Equal(t, syscall.EMFILE, err)
	_, _, err = b.DialTCP(port80)
	require.Equal(t, syscall.EMFILE, err)
	require.NoError(t, b.Close(fd))
	_, err = b.Accept(l)
	require.NoError(t, err, "the connection has waited")
	_, err = b.Accept(l)
	require.Equal(t, syscall.EMFILE, err, "also with an empty backlog, since the descriptor comes first")
	b.right()
}

func TestUseAfterCloseFailsTheWorld(t *testing.T) {
	for name, use := range map[string]func(*kernelBench, int) error{
		"close":   func(b *kernelBench, fd int) error { return b.Close(fd) },
		"reset":   func(b *kernelBench, fd int) error { return b.Reset(fd) },
		"receive": func(b *kernelBench, fd int) error { _, err := b.Receive(fd, make([]byte, 1)); return err },
		"send":    func(b *kernelBench, fd int) error { _, err := b.Send(fd, nil, make([]byte, 1)); return err },
		"accept":  func(b *kernelBench, fd int) error { _, err := b.Accept(fd); return err },
		"error":   func(b *kernelBench, fd int) error { return b.SocketError(fd) },
		"mute":    func(b *kernelBench, fd int) error { return b.CloseWrite(fd) },
		"option":  func(b *kernelBench, fd int) error { return b.SetNoDelay(fd, true) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			_, fd := b.pair()
			require.NoError(t, b.Close(fd))
			b.right()
			require.Equal(t, syscall.EBADF, use(b, fd))
			require.ErrorContains(t, b.w.failure, "descriptor 4, which is not open")
		})
	}
}

func TestOpenDescriptorsAreListed(t *testing.T) {
	b := newBench(t, Options{})
	require.Empty(t, b.k.open())
	l := b.listen()
	b.dialled()
	_, err := b.Accept(l)
	require.NoError(t, err)
	p, err := b.OpenPoller()
	require.NoError(t, err)
	require.Equal(t, []string{
		"descriptor 3 of server (the listener at 10.0.0.1:80)",
		"descriptor 4 of server (connection 2)",
		"descriptor 5 of server (a poller)",
		"descriptor 6 of server (a poller)",
	}, b.k.open())
	require.NoError(t, p.Close())
	require.NoError(t, b.Close(3))
	require.NoError(t, b.Close(4))
	require.Empty(t, b.k.open())
	b.right()
}

func TestListenAddressConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		sibling       bool
		err           error
	}{
		"the same":                   {"10.0.0.1:80", "10.0.0.1:80", false, syscall.EADDRINUSE},
		"a sibling":                  {"10.0.0.1:80", "10.0.0.1:80", true, nil},
		"another port":               {"10.0.0.1:80", "10.0.0.1:81", false, nil},
		"another address":            {"10.0.0.1:80", "10.0.0.2:80", false, nil},
		"all beside one":             {"10.0.0.1:80", "0.0.0.0:80", false, syscall.EADDRINUSE},
		"one beside all":             {"0.0.0.0:80", "10.0.0.1:80", false, syscall.EADDRINUSE},
		"one beside all of IPv6":     {"[::]:80", "10.0.0.1:80", false, syscall.EADDRINUSE},
		"IPv6 beside IPv4":           {"0.0.0.0:80", "[fd00::1]:80", false, nil},
		"mapped is IPv4":             {"10.0.0.1:80", "[::ffff:10.0.0.1]:80", false, syscall.EADDRINUSE},
		"port of the world's choice": {"10.0.0.1:0", "10.0.0.1:0", false, nil},
		"a zone":                     {"10.0.0.1:80", "[fe80::1%eth0]:80", false, syscall.ENODEV},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			_, err := b.ListenTCP(netip.MustParseAddrPort(c.first), netpoll.ListenOptions{First: true})
			require.NoError(t, err)
			fd, err := b.ListenTCP(netip.MustParseAddrPort(c.second), netpoll.ListenOptions{First: !c.sibling})
			if c.err != nil {
				require.Equal(t, c.err, err)
				return
			}
			require.NoError(t, err)
			require.NotContains(t, b.LocalAddr(fd).String(), ":0")
		})
	}
}

func TestSiblingsShareConnections(t *testing.T) {
	b := newBench(t, Options{Seed: 7})
	var fds []int
	for i := range 3 {
		fd, err := b.ListenTCP(port80, netpoll.ListenOptions{First: i == 0})
		require.NoError(t, err)
		fds = append(fds, fd)
	}
	for range 90 {
		b.dialled()
	}
	all := 0
	for _, fd := range fds {
		n := 0
		for _, err := b.Accept(fd); err == nil; _, err = b.Accept(fd) {
			n++
		}
		require.Greater(t, n, 10)
		all += n
	}
	require.Equal(t, 90, all)
}

// The SYN is sent again after 1, 2 and 4 s.
func TestFullBacklogIsTriedAgain(t *testing.T) {
	b := newBench(t, Options{})
	l, err := b.ListenTCP(port80, netpoll.ListenOptions{First: true, Backlog: 1})
	require.NoError(t, err)
	b.dialled()
	b.dialled()
	e, err := b.w.net.dialTCP(port80, &fakeHolder{})
	require.NoError(t, err)
	b.pass(6900 * time.Millisecond)
	require.False(t, e.settled())
	_, err = b.Accept(l)
	require.NoError(t, err)
	b.pass(200 * time.Millisecond)
	require.True(t, e.settled())
	require.NoError(t, e.socketError())

	late, err := b.w.net.dialTCP(port80, &fakeHolder{})
	require.NoError(t, err)
	b.pass(126 * time.Second)
	require.False(t, late.settled())
	b.pass(2 * time.Second)
	require.Equal(t, syscall.ETIMEDOUT, late.socketError())
}

// only returns Faults of which one kind happens each time that it can.
func only(set func(*Faults)) Options {
	o := Options{Seed: 1}
	set(&o.Faults)
	return o
}

func TestFaultsOfCalls(t *testing.T) {
	ten := make([]byte, 10)
	t.Run("short read", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.ShortRead = often }))
		e, fd := b.pair()
		_, _ = e.send(nil, ten)
		b.settle()
		n, err := b.Receive(fd, ten)
		require.NoError(t, err)
		require.Positive(t, n)
		require.Less(t, n, 10)
	})
	t.Run("short write", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.ShortWrite = often }))
		_, fd := b.pair()
		for _, parts := range [][2]int{{10, 0}, {0, 10}, {5, 5}} {
			n, err := b.Send(fd, ten[:parts[0]], ten[:parts[1]])
			require.NoError(t, err)
			require.Positive(t, n)
			require.Less(t, n, 10)
		}
	})
	t.Run("false empty", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.FalseEmpty = often }))
		e, fd := b.pair()
		_, _ = e.send(nil, ten)
		b.settle()
		_, err := b.Receive(fd, ten)
		require.Equal(t, syscall.EAGAIN, err)
		b.w.healed = true
		n, err := b.Receive(fd, ten)
		require.NoError(t, err)
		require.Equal(t, 10, n)
	})
	t.Run("false full", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.FalseFull = often }))
		_, fd := b.pair()
		_, err := b.Send(fd, nil, ten)
		require.Equal(t, syscall.EAGAIN, err)
	})
	t.Run("reset", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.Reset = often }))
		e, fd := b.pair()
		n, err := e.send(nil, ten)
		require.NoError(t, err)
		require.Equal(t, 10, n)
		b.settle()
		require.True(t, e.c.disrupted)
		require.Equal(t, syscall.ECONNRESET, e.socketError())
		n, err = b.Receive(fd, make([]byte, 20))
		if err == nil {
			require.Less(t, n, 10)
			_, err = b.Receive(fd, ten)
		}
		require.Equal(t, syscall.ECONNRESET, err)
	})
	t.Run("close error", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.CloseError = often }))
		l, err := b.ListenTCP(port80, netpoll.ListenOptions{First: true})
		require.NoError(t, err)
		require.Equal(t, syscall.EIO, b.Close(l))
		require.Empty(t, b.k.open())
	})
	t.Run("aborted", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.Aborted = often }))
		l := b.listen()
		e := b.dialled()
		_, err := b.Accept(l)
		require.Contains(t, []error{syscall.ECONNABORTED, syscall.EPROTO, syscall.EPERM, syscall.ENETDOWN, syscall.EHOSTUNREACH}, err)
		_, err = b.Accept(l)
		require.Equal(t, syscall.EAGAIN, err)
		b.settle()
		require.Equal(t, syscall.ECONNRESET, e.socketError())
	})
	t.Run("no descriptors", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.NoFiles = often }))
		l := b.listen()
		b.dialled()
		_, err := b.Accept(l)
		require.Contains(t, []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}, err)
		b.w.faults.NoFiles = 0
		_, again := b.Accept(l)
		require.Equal(t, err, again)
		b.pass(time.Second)
		_, err = b.Accept(l)
		require.NoError(t, err)
	})
	t.Run("refused", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.Refused = often }))
		b.listen()
		e, err := b.w.net.dialTCP(port80, &fakeHolder{})
		require.NoError(t, err)
		b.pass(2 * latencyHigh)
		require.Equal(t, syscall.ECONNREFUSED, e.socketError())
		require.True(t, e.c.disrupted)
	})
	t.Run("unreachable", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.Unreachable = often }))
		atOnce, later := 0, 0
		for range 20 {
			fd, done, err := b.DialTCP(port80)
			if err != nil {
				require.Equal(t, syscall.ENETUNREACH, err)
				atOnce++
				continue
			}
			require.False(t, done)
			b.pass(3 * time.Second)
			require.Equal(t, syscall.EHOSTUNREACH, b.SocketError(fd))
			require.NoError(t, b.Close(fd))
			later++
		}
		require.Positive(t, atOnce)
		require.Positive(t, later)
		require.Empty(t, b.k.open())
		require.Empty(t, b.w.net.connections)
	})
	t.Run("timed out", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.TimedOut = often }))
		e, err := b.w.net.dialTCP(port80, &fakeHolder{})
		require.NoError(t, err)
		b.pass(126 * time.Second)
		require.False(t, e.settled())
		b.pass(time.Second)
		require.Equal(t, syscall.ETIMEDOUT, e.socketError())
	})
	t.Run("no memory", func(t *testing.T) {
		b := newBench(t, only(func(f *Faults) { f.NoMemory = often }))
		_, fd := b.pair()
		p, err := b.OpenPoller()
		require.NoError(t, err)
		require.Contains(t, []error{syscall.ENOMEM, syscall.ENOSPC}, p.Add(fd, 1, netpoll.Stream))
		b.w.healed = true
		require.NoError(t, p.Add(fd, 1, netpoll.Stream))
		b.right()
	})
	for name, c := range map[string]struct {
		set  func(*Faults)
		most time.Duration
	}{
		"slow":    {func(f *Faults) { f.Slow = often }, time.Second},
		"clogged": {func(f *Faults) { f.Clog = often }, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Options{})
			e, fd := b.pair()
			c.set(&b.w.faults)
			_, _ = e.send(nil, ten)
			b.w.healed = true
			b.pass(latencyHigh)
			_, err := b.Receive(fd, ten)
			require.Equal(t, syscall.EAGAIN, err)
			_, _ = e.send(nil, ten[:1])
			b.pass(c.most)
			n, err := b.Receive(fd, make([]byte, 20))
			require.NoError(t, err)
			require.Equal(t, 11, n)
		})
	}
}

// Bytes that a reset overtakes are lost. Bytes that had arrived before are not.
func TestResetOvertakes(t *testing.T) {
	lost, kept := 0, 0
	for seed := range uint64(50) {
		b := newBench(t, Options{Seed: seed})
		e, fd := b.pair()
		_, _ = e.send(nil, []byte("arrived"))
		b.settle()
		_, _ = e.send(nil, []byte(" on its way"))
		e.reset()
		b.settle()
		got, err := b.hear(fd)
		require.NoError(t, err)
		switch got {
		case "arrived":
			lost++
		case "arrived on its way":
			kept++
		}
		_, err = b.hear(fd)
		require.Equal(t, syscall.ECONNRESET, err)
		_, err = b.hear(fd)
		require.Equal(t, io.EOF, err)
	}
	require.Positive(t, lost)
	require.Positive(t, kept)
}
