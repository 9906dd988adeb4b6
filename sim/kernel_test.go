package sim

import (
	"io"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/stretchr/testify/require"
)

// kernelBench is a world with one server, whose calls the test makes itself. No scheduler runs.
type kernelBench struct {
	t testing.TB
	w *World
	k *kernel
	r *runner
	engine.OS
}

func newBench(t testing.TB, o Options) *kernelBench {
	w := New(o)
	v := &Server{w: w, name: "server"}
	v.kernel = newKernel(v)
	r := &runner{server: v, w: w}
	return &kernelBench{t: t, w: w, k: v.kernel, r: r, OS: &view{kernel: v.kernel, r: r}}
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
	fd, err := b.ListenTCP(port80, 0)
	require.NoError(b.t, err)
	return fd
}

// dialled connects a fakeHolder to a listener.
func (b *kernelBench) dialled() *end {
	e, err := b.w.net.dialTCP(port80, &fakeHolder{})
	require.NoError(b.t, err)
	b.settle()
	require.NoError(b.t, e.takeError())
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
			_ = use(b, fd)
			require.ErrorContains(t, b.w.failure, "descriptor 4, which is not open")
		})
	}
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
			_, err := b.ListenTCP(netip.MustParseAddrPort(c.first), 0)
			require.NoError(t, err)
			listen := b.ListenTCP
			if c.sibling {
				listen = b.JoinTCP
			}
			fd, err := listen(netip.MustParseAddrPort(c.second), 0)
			if c.err != nil {
				require.Equal(t, c.err, err)
				return
			}
			require.NoError(t, err)
			require.NotContains(t, b.LocalAddr(fd).String(), ":0")
		})
	}
}

// The SYN is sent again after 1, 2 and 4 s.
func TestFullBacklogIsTriedAgain(t *testing.T) {
	b := newBench(t, Options{})
	l, err := b.ListenTCP(port80, 1)
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
	require.NoError(t, e.takeError())

	late, err := b.w.net.dialTCP(port80, &fakeHolder{})
	require.NoError(t, err)
	b.pass(126 * time.Second)
	require.False(t, late.settled())
	b.pass(2 * time.Second)
	require.Equal(t, syscall.ETIMEDOUT, late.takeError())
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

func (b *kernelBench) poller() *poller {
	p, err := b.OpenPoller()
	require.NoError(b.t, err)
	return p.(*poller)
}

// watched returns a connection that a poller watches.
func (b *kernelBench) watched() (e *end, fd int, p *poller) {
	e, fd = b.pair()
	p = b.poller()
	require.NoError(b.t, p.Add(fd, 7, netpoll.In|netpoll.Out))
	return e, fd, p
}

// look polls without waiting.
func (b *kernelBench) look(p engine.Poller) []netpoll.Event {
	events := make([]netpoll.Event, 8)
	n, err := p.Wait(events, 0)
	require.NoError(b.t, err)
	return events[:n]
}

type reported = []netpoll.Event

func TestReceiveWithoutEventFailsTheWorld(t *testing.T) {
	b := newBench(t, Options{})
	e, fd, p := b.watched()
	b.look(p)
	_, _ = e.send(nil, []byte("one"))
	b.settle()
	b.look(p)
	_, err := b.hear(fd)
	require.NoError(t, err)
	b.right()
	_, _ = b.hear(fd) // after the short read nothing is there
	require.ErrorContains(t, b.w.failure, "no event has reported input")
}

// A sender that found no room is notified when a third of the room is free, and not before.
func TestRoomIsReported(t *testing.T) {
	for _, local := range []bool{false, true} {
		b := newBench(t, Options{})
		var e *end
		var fd int
		if local {
			l, err := b.ListenUnix("/s", 0, nil)
			require.NoError(t, err)
			e, err = b.w.net.dialUnix("/s", &fakeHolder{})
			require.NoError(t, err)
			fd, err = b.Accept(l)
			require.NoError(t, err)
		} else {
			e, fd = b.pair()
		}
		p := b.poller()
		require.NoError(t, p.Add(fd, 7, netpoll.In|netpoll.Out))
		b.look(p)
		capacity := e.in.capacity
		n, err := b.Send(fd, nil, make([]byte, capacity+1))
		require.NoError(t, err)
		require.Equal(t, capacity, n)
		b.settle()
		enough := (capacity + 2) / 3
		if local {
			enough = capacity // it was one piece, or two
		}
		_, _ = e.receive(make([]byte, enough-1))
		b.settle()
		require.Empty(t, b.look(p))
		_, _ = e.receive(make([]byte, 1))
		b.settle()
		require.Equal(t, reported{{Tag: 7, Ready: netpoll.Out}}, b.look(p))
		b.right()
	}
}
