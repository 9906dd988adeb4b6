package netpoll

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// marked is what comes with the mark of out-of-band data.
const marked = Priority

// waits returns how long waiting for d took, sorted, and requires that it was never early. It asks
// beneath Wait, which does not distinguish a signal (the runtime's own, for one) from the deadline.
func waits(t *testing.T, p *Poller, d time.Duration, times int) (took []time.Duration) {
	_, err := p.Wait(make([]Event, 1), 0) // makes room
	require.NoError(t, err)
	for len(took) < times {
		began := time.Now()
		n, errno := p.sel.ask(1, d)
		ended := time.Since(began)
		if errno == unix.EINTR {
			continue
		}
		require.Zero(t, errno)
		require.Zero(t, n)
		require.GreaterOrEqual(t, ended, d, "early")
		took = append(took, ended)
	}
	slices.Sort(took)
	return took
}

func TestWaitIsNotEarly(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	for _, d := range []time.Duration{1, time.Microsecond, time.Millisecond, 3*time.Millisecond + 1, 20 * time.Millisecond} {
		waits(t, p, d, 3)
	}
}

// On a kernel without epoll_pwait2 a wait is longer than asked for, not shorter.
func TestWaitIsRoundedUpWithoutPwait2(t *testing.T) {
	balanced(t)
	p := newPoller(t)
	p.sel.coarse = true
	waits(t, p, 1500*time.Microsecond, 20)
	require.GreaterOrEqual(t, waits(t, p, 1, 20)[0], time.Millisecond)
}

func TestMilliseconds(t *testing.T) {
	for d, ms := range map[time.Duration]int{
		-1: -1, math.MinInt64: -1, 1: 1, time.Millisecond - 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2,
		time.Hour: 3600_000, math.MaxInt64: math.MaxInt32,
	} {
		require.Equal(t, ms, milliseconds(d), "%d ns", d)
	}
}

// watched is one connection as an engine keeps it: bits set by events and cleared by what calls return.
type watched struct {
	peer, fd int
	tcp      bool
	bits     Ready
}

// take is the rule of the package's documentation.
func (w *watched) take(room int) {
	n, err := sys.Receive(w.fd, make([]byte, room))
	switch {
	case err == unix.EAGAIN && w.bits&Priority != 0:
		w.bits &^= Priority
		w.take(room)
	case err == unix.EAGAIN:
		w.bits &^= In
	case err == nil && n < room && w.tcp && w.bits&(Priority|PeerClosed) == 0:
		w.bits &^= In
	}
}

func (w *watched) give(size int) {
	if _, err := sys.Send(w.fd, nil, make([]byte, size)); err == unix.EAGAIN {
		w.bits &^= Out
	}
}

func (w *watched) step(r *rand.Rand) {
	size := 1 + r.IntN(1<<r.IntN(18))
	switch op := r.IntN(20); {
	case op < 6:
		_, _ = sys.Send(w.peer, make([]byte, 1), make([]byte, size))
	case op < 8 && w.tcp:
		_ = unix.Send(w.peer, []byte{'!'}, unix.MSG_OOB|unix.MSG_NOSIGNAL)
	case op < 8:
		_ = unix.Sendmsg(w.peer, make([]byte, size), unix.UnixRights(w.peer), nil, unix.MSG_NOSIGNAL)
	case op < 13:
		w.take(size)
	case op < 16:
		w.give(size)
	case op < 19:
		_, _ = sys.Receive(w.peer, make([]byte, size))
	case r.IntN(50) == 0:
		_ = sys.CloseWrite(w.peer)
	}
}

// The slow twin is poll(2): whatever it finds ready must be known to a caller that only has edges and
// clears its bits by the rule, or a connection has been forgotten for ever.
func TestNoEdgeIsLost(t *testing.T) {
	for seed := range uint64(20) {
		balanced(t)
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPoller(t)
		conns := crowdOf(t, p, 6)
		for step := range 1500 {
			conns[r.IntN(len(conns))].step(r)
			level := levels(t, conns)
			absorb(t, p, conns)
			for i, w := range conns {
				require.Equal(t, level[i], level[i]&w.bits, "seed %d step %d connection %d: ready, and not reported", seed, step, i)
			}
		}
	}
}

func crowdOf(t *testing.T, p *Poller, n int) (conns []*watched) {
	for i := range n {
		w := &watched{tcp: i%2 == 0}
		if w.tcp {
			w.peer, w.fd = tcpPair(t)
		} else {
			w.peer, w.fd = unixPair(t)
		}
		hold(t, w.peer)
		hold(t, w.fd)
		require.NoError(t, p.Add(w.fd, uint64(i), In|Out))
		conns = append(conns, w)
	}
	return conns
}

func levels(t *testing.T, conns []*watched) (level []Ready) {
	var fds []unix.PollFd
	for _, w := range conns {
		fds = append(fds, unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN | unix.POLLOUT | unix.POLLRDHUP})
	}
	_, err := unix.Poll(fds, 0)
	require.NoError(t, err)
	for _, f := range fds {
		level = append(level, ready(uint32(f.Revents))&(In|Out|PeerClosed|Error))
	}
	return level
}

func absorb(t *testing.T, p *Poller, conns []*watched) {
	events := make([]Event, 2)
	for n, err := p.Wait(events, 0); n > 0; n, err = p.Wait(events, 0) {
		require.NoError(t, err)
		for _, e := range events[:n] {
			conns[e.Tag].bits |= e.Ready
		}
	}
}
