package sim

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/netpoll"
)

func (h *recorder) listen() (fd int, addr netip.AddrPort) {
	fd, err := h.os.ListenTCP(netip.MustParseAddrPort("127.0.0.1:0"), 0)
	h.logf("listen: %v", err)
	return fd, netip.MustParseAddrPort(h.os.LocalAddr(fd).String())
}

func (h *recorder) listenUnix(name string, backlog int) int {
	fd, err := h.os.ListenUnix(filepath.Join(h.dir, name), backlog, nil)
	h.logf("listen at %s: %v", name, err)
	return fd
}

func (h *recorder) dial(addr netip.AddrPort) int {
	fd, _, err := h.os.DialTCP(addr)
	h.logf("dial: %v", err)
	h.settle()
	return fd
}

func (h *recorder) dialUnix(name string) int {
	fd, done, err := h.os.DialUnix(filepath.Join(h.dir, name))
	h.logf("dial %s: %v, %v", name, done, err)
	return fd
}

func (h *recorder) send(fd int, text string) {
	n, err := h.os.Send(fd, nil, []byte(text))
	h.logf("send %s: %d, %v", text, n, word(err))
	h.settle()
}

func (h *recorder) receive(fd int) {
	h.expectInput(fd)
	var p [100]byte
	n, err := h.os.Receive(fd, p[:])
	h.logf("receive: %q, %v", p[:n], word(err))
}

func (h *recorder) accept(fd int) int {
	got, err := h.os.Accept(fd)
	h.logf("accept: %v", err)
	return got
}

func (h *recorder) close(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			h.logf("close: %v", h.os.Close(fd))
		}
	}
	h.settle()
}

// ready logs what is ready on fd.
func (h *recorder) ready(fd int, want netpoll.Ready) {
	p, _ := h.os.OpenPoller()
	events := make([]netpoll.Event, 1)
	h.logf("add: %v", p.Add(fd, 1, want))
	n, err := p.Wait(events, 0)
	h.logf("%d events, %v: %v", n, events[0].Ready, err)
	_ = p.Close()
}

var scripts = map[string]func(h *recorder){
	"nothing listens": func(h *recorder) {
		l, addr := h.listen()
		h.close(l)
		fd := h.dial(addr)
		h.ready(fd, netpoll.In|netpoll.Out)
		h.logf("error: %v", h.os.SocketError(fd))
		h.logf("error: %v", h.os.SocketError(fd))
		h.receive(fd)
		h.send(fd, "x")
		h.logf("half-close: %v", h.os.CloseWrite(fd))
		h.close(fd)
	},
	"nothing listens, and a receive reports it": func(h *recorder) {
		l, addr := h.listen()
		h.close(l)
		fd := h.dial(addr)
		h.receive(fd)
		h.receive(fd)
		h.close(fd)
	},
	"connections are accepted in order": func(h *recorder) {
		l, addr := h.listen()
		var fds []int
		for _, text := range []string{"a", "b", "c"} {
			fd := h.dial(addr)
			h.send(fd, text)
			fds = append(fds, fd)
		}
		h.ready(l, netpoll.In)
		for range fds {
			fd := h.accept(l)
			h.receive(fd)
			h.receive(fd)
			h.close(fd)
		}
		h.accept(l)
		h.ready(l, netpoll.In)
		h.close(fds...)
		h.close(l)
	},
	"reset before accept": func(h *recorder) {
		l, addr := h.listen()
		a := h.dial(addr)
		h.send(a, "never mind")
		h.logf("reset: %v", h.os.Reset(a))
		h.settle()
		h.ready(l, netpoll.In)
		fd := h.accept(l)
		h.ready(fd, netpoll.In|netpoll.Out)
		h.receive(fd)
		h.receive(fd)
		h.receive(fd)
		h.send(fd, "x")
		h.logf("peer: %v", h.os.PeerAddr(fd) != nil)
		h.close(fd, l)
	},
	"closed before accept": func(h *recorder) {
		l, addr := h.listen()
		a := h.dial(addr)
		h.send(a, "last words")
		h.close(a)
		fd := h.accept(l)
		h.ready(fd, netpoll.In|netpoll.Out)
		h.receive(fd)
		h.receive(fd)
		h.send(fd, "x")
		h.ready(fd, netpoll.In|netpoll.Out)
		h.receive(fd)
		h.send(fd, "x")
		h.send(fd, "x")
		h.close(fd, l)
	},
	"the port closes over a backlog": func(h *recorder) {
		l, addr := h.listen()
		a := h.dial(addr)
		h.send(a, "hello")
		h.close(l)
		h.ready(a, netpoll.In|netpoll.Out)
		h.receive(a)
		h.receive(a)
		h.send(a, "x")
		h.close(a)
	},
	"a server listens": func(h *recorder) {
		l, addr := h.listen()
		_, err := h.os.ListenTCP(addr, 0)
		h.logf("another first: %v", err)
		s, err := h.os.JoinTCP(addr, 0)
		h.logf("a sibling: %v", err)
		h.close(l, s)
	},
	"what is called is refused": func(h *recorder) {
		_, err := h.os.ListenTCP(netip.AddrPort{}, 0)
		h.logf("no address: %v", err)
		_, _, err = h.os.DialTCP(netip.AddrPort{})
		h.logf("no address: %v", err)
		h.dialUnix("nobody")
		h.logf("unlink nothing: %v", h.os.Unlink(filepath.Join(h.dir, "nobody")))
	},
	"a path's life": func(h *recorder) {
		l := h.listenUnix("s", 0)
		h.listenUnix("s", 0)
		h.logf("unlink: %v", h.os.Unlink(filepath.Join(h.dir, "s")))
		h.close(l)
		h.dialUnix("s")
		l = h.listenUnix("s", 0)
		h.close(l)
		h.logf("unlink: %v", h.os.Unlink(filepath.Join(h.dir, "s")))
		h.dialUnix("s")
	},
	"a path's backlog is full": func(h *recorder) {
		l := h.listenUnix("s", 2)
		var fds []int
		for range 5 {
			fds = append(fds, h.dialUnix("s"))
		}
		h.listenUnix("s", 0)
		g := h.accept(l)
		fds = append(fds, h.dialUnix("s"))
		h.close(l)
		h.ready(fds[1], netpoll.In|netpoll.Out)
		h.receive(fds[1])
		h.receive(fds[1])
		h.send(fds[1], "x")
		h.receive(fds[0])
		h.close(g)
		h.receive(fds[0])
		h.close(fds...)
	},
}

func TestCallsAreAsOnThisMachine(t *testing.T) {
	tier.Need(t, tier.Full, "waits for the network of this machine, which takes longer when it is busy")
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			simulated := simulatedRecorder(t, 1)
			script(simulated)
			settled(t, strings.Join(simulated.log, "\n"), func(wait time.Duration) string {
				real := realRecorder(t, wait)
				script(real)
				return strings.Join(real.log, "\n")
			})
		})
	}
}

// settled requires that the machine does as the model says once everything has arrived, however long it needs: a slow machine,
// or one that has delayed an acknowledgement (40 ms), is given more time after each step.
func settled(t *testing.T, want string, machine func(wait time.Duration) string) {
	t.Helper()
	got := ""
	for wait := 100 * time.Microsecond; wait <= time.Second && got != want; wait *= 10 {
		got = machine(wait)
	}
	require.Equal(t, want, got)
}
