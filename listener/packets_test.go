package listener_test

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/budget"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
)

// other is the other end of a conversation.
func other(t *testing.T) net.PacketConn {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	return c
}

func hears(t *testing.T, c net.PacketConn, want string) (from net.Addr) {
	t.Helper()
	b := make([]byte, 1<<16)
	n, from, err := c.ReadFrom(b)
	require.NoError(t, err)
	require.Equal(t, want, string(b[:n]))
	return from
}

func TestPacketsThatFindNoRoom(t *testing.T) {
	l := servertest.New(t, act.Config{})
	l.OS.Fail = servertest.Failing("sendpackets", syscall.EAGAIN)
	c := other(t)
	p, err := listener.DialPackets(l.S, c.LocalAddr(), listener.PacketOptions{Queue: 10 * 65})
	require.NoError(t, err)
	l.Turn(func(*act.Task) {
		for i := range 10 {
			require.NoError(t, p.Send(fmt.Append(nil, i)))
		}
		require.ErrorIs(t, p.Send(nil), listener.ErrPacketDropped)
		require.Equal(t, listener.PacketCounts{Full: 1}, p.Conn().Counts())
	})
	l.OS.Fail = nil
	l.Until("the kernel has room", func() bool { return p.Conn().Counts().Sent == 10 })
	l.Turn(func(*act.Task) { require.NoError(t, p.Send([]byte("more"))) })
	for i := range 10 {
		hears(t, c, fmt.Sprint(i))
	}
	l.For(0)
	hears(t, c, "more")
	require.NoError(t, p.Close())
}

func TestAPacketThatIsRefusedHoldsUpNoOther(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c := other(t)
	p, err := listener.DialPackets(l.S, c.LocalAddr(), listener.PacketOptions{})
	require.NoError(t, err)
	l.Turn(func(*act.Task) {
		require.NoError(t, p.Send([]byte("a")))
		require.NoError(t, p.Send(make([]byte, 65_535)), "the kernel decides, later")
		require.NoError(t, p.Send([]byte("b")))
		require.ErrorIs(t, p.Send(make([]byte, 1<<16)), listener.ErrTooLong)
	})
	l.For(0)
	hears(t, c, "a")
	hears(t, c, "b")
	require.Equal(t, listener.PacketCounts{Sent: 2, Refused: 1}, p.Conn().Counts())
	l.Turn(func(*act.Task) {
		_, err := p.Receive()
		require.ErrorIs(t, err, syscall.EMSGSIZE)
		_, err = p.Receive()
		require.ErrorAs(t, err, new(act.Blocked), "once")
		require.NoError(t, p.Close())
		require.ErrorIs(t, p.Send(nil), net.ErrClosed)
		_, err = p.Receive()
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// What was broken: what was taken stayed in memory for as long as another packet waited.
func TestAMailboxThatIsNeverEmpty(t *testing.T) {
	l := servertest.New(t, act.Config{})
	to, err := listener.DialPackets(l.S, other(t).LocalAddr(), listener.PacketOptions{})
	require.NoError(t, err)
	var p listener.Peer
	to.Conn().Internals().BeginPeer(&p, &netpoll.Packet{})
	for i := range 5000 {
		in := netpoll.Packet{Data: fmt.Append(nil, i)}
		require.True(t, p.Internals().Put(&in, 3))
		if i < 2 {
			continue
		}
		require.False(t, p.Internals().Put(&in, 3), "there are three")
		out, err := p.Receive()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i-2), string(out.Data))
	}
	require.Less(t, budget.Of(l.S).Total(), 4<<10)
	require.Equal(t, 4998, p.Lost())
	require.NoError(t, p.Close())
	require.Zero(t, budget.Of(l.S).Total())
	require.NoError(t, to.Close())
}

func TestQuery(t *testing.T) {
	for _, row := range []struct {
		name   string
		server func(l *servertest.Stepped, c *servertest.Clock, s net.PacketConn)
		answer string
		err    error
	}{
		{"an answer", func(l *servertest.Stepped, _ *servertest.Clock, s net.PacketConn) {
			_, _ = s.WriteTo([]byte("yes"), hears(t, s, "question"))
		}, "yes", nil},
		{"a forged one before it", func(l *servertest.Stepped, _ *servertest.Clock, s net.PacketConn) {
			to := hears(t, s, "question")
			_, _ = s.WriteTo([]byte("no"), to)
			forger := other(t)
			_, _ = forger.WriteTo([]byte("yes, but"), to)
			_ = forger.Close()
			_, _ = s.WriteTo([]byte("yes"), to)
		}, "yes", nil},
		{"one to the third request", func(l *servertest.Stepped, c *servertest.Clock, s net.PacketConn) {
			for _, wait := range []time.Duration{1, 2} {
				hears(t, s, "question")
				c.Pass(wait*time.Second - 1)
				l.For(0)
				require.NoError(t, s.SetReadDeadline(time.Now()))
				_, _, err := s.ReadFrom(nil)
				require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it waits for longer each time")
				require.NoError(t, s.SetReadDeadline(time.Now().Add(servertest.Timeout)))
				c.Pass(1)
				l.For(0)
			}
			_, _ = s.WriteTo([]byte("yes"), hears(t, s, "question"))
		}, "yes", nil},
		{"none", func(l *servertest.Stepped, c *servertest.Clock, s net.PacketConn) {
			for range 3 {
				hears(t, s, "question")
				c.Pass(4 * time.Second)
				l.For(0)
			}
		}, "", os.ErrDeadlineExceeded},
		{"nobody there", func(_ *servertest.Stepped, _ *servertest.Clock, s net.PacketConn) {
			_ = s.Close()
		}, "", syscall.ECONNREFUSED},
	} {
		t.Run(row.name, func(t *testing.T) {
			var clock servertest.Clock
			l := servertest.New(t, act.Config{Clock: &clock})
			s := other(t)
			q := &listener.Query{Address: s.LocalAddr().String(), Request: []byte("question")}
			q.Accept = func(b []byte) bool { return b[0] == 'y' }
			if row.err == syscall.ECONNREFUSED {
				row.server(l, &clock, s)
			}
			done, failure := false, error(nil)
			l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
				d := q.Act(t)
				if done = d.Finished(); d == act.Failed {
					failure = t.Err()
					return act.Done
				}
				return d
			}))
			l.For(0)
			if row.err != syscall.ECONNREFUSED {
				row.server(l, &clock, s)
			}
			l.Until("it has ended", func() bool { return done })
			require.ErrorIs(t, failure, row.err)
			require.Equal(t, row.answer, string(q.Answer()))
		})
	}
}
