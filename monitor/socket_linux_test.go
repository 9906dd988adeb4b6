package monitor_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/tier"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/netpoll"
)

// raw calls f with the descriptor of a connection.
func raw(t *testing.T, c net.Conn, f func(fd int) error) {
	t.Helper()
	rc, err := c.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	var failed error
	require.NoError(t, rc.Control(func(fd uintptr) {
		for failed = f(int(fd)); failed == unix.EAGAIN || failed == unix.EINTR; failed = f(int(fd)) {
			time.Sleep(100 * time.Microsecond)
		}
	}))
	require.NoError(t, failed)
}

// shout sends out-of-band data.
func shout(t *testing.T, c net.Conn, text string) {
	raw(t, c, func(fd int) error { return unix.Send(fd, []byte(text), unix.MSG_OOB) })
}

// pass sends text with a descriptor beside it: the kernel never joins it with what comes before or after.
func pass(t *testing.T, c net.Conn, text string) {
	raw(t, c, func(fd int) error { return unix.Sendmsg(fd, []byte(text), unix.UnixRights(0), nil, 0) })
}

// Random order of plain data and of what splits reads, random pauses, random room for each receive: all
// of it arrives, without an edge more than the kernel gives.
func TestNothingIsLeftBehindByAShortRead(t *testing.T) {
	for _, row := range []struct {
		network, mark string
		split         func(*testing.T, net.Conn, string)
	}{{"tcp", "!", shout}, {"unix", "#", pass}} {
		t.Run(row.network, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			for range tier.Choose(20, 20, 60) {
				exchange(t, r, row.network, row.mark, row.split)
			}
		})
	}
}

func exchange(t *testing.T, r *rand.Rand, network, mark string, split func(*testing.T, net.Conn, string)) {
	t.Helper()
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream(network)
	defer stream.Abort()
	script := make([]int, 2+r.IntN(12))
	for i := range script {
		script[i] = r.IntN(40)
	}
	room := 1 + r.IntN(30)
	var sent bytes.Buffer
	for _, n := range script {
		if n > 9 {
			sent.Write(bytes.Repeat([]byte{byte('a' + n%26)}, n))
		}
	}
	go func() {
		for _, n := range script {
			switch {
			case n > 9:
				_, _ = peer.Write(bytes.Repeat([]byte{byte('a' + n%26)}, n))
			case n > 5:
				split(t, peer, mark)
			case n > 3:
				time.Sleep(time.Duration(n) * 100 * time.Microsecond)
			}
		}
		_ = peer.Close()
	}()
	var got []byte
	var end error
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		for {
			part, err := stream.Lend(room)
			got = append(got, part...)
			if err == monitor.ErrWouldBlock {
				stream.AwaitInput(t.Waker())
				return act.Wait
			}
			if err != nil {
				end = err
				return act.Done
			}
		}
	}))
	l.Until("the end", func() bool { return end != nil })
	require.Equal(t, io.EOF, end)
	require.Equal(t, sent.String(), string(bytes.ReplaceAll(got, []byte(mark), nil)))
}

// What was broken: at the mark of out-of-band data the kernel takes a pending signal for a reason to say
// EAGAIN; it was believed.
func TestAReceiveAtTheMarkIsTriedTwice(t *testing.T) {
	l := servertest.New(t, act.Config{})
	stream, peer := l.Stream("tcp")
	defer stream.Abort()
	servertest.Send(t, peer, "before")
	shout(t, peer, "!")
	servertest.Send(t, peer, "behind")
	l.Until("the mark", func() bool { return monitor.Reported(stream, netpoll.Priority) })
	calls := 0
	l.OS.Fail = func(call string, _ int) error {
		if call == "receive" {
			if calls++; calls == 2 {
				return syscall.EAGAIN
			}
		}
		return nil
	}
	var got []byte
	var end error
	listen(l, stream, &got, &end)
	l.Until("both parts", func() bool { return string(got) == "beforebehind" })
}

func TestADialledConnectionDoesNotDelaySmallSegments(t *testing.T) {
	l := servertest.New(t, act.Config{})
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = door.Close() }()
	fd := -1
	l.OS.Fail = func(call string, n int) error {
		if call == "add" {
			fd = n
		}
		return nil
	}
	dial, err := l.Engine().Dial(door.Addr(), engine.ConnOptions{})
	require.NoError(t, err)
	defer dial.Close()
	on, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	require.NoError(t, err)
	require.NotZero(t, on)
}
