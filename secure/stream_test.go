package secure_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/internal/testing/streamtest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/stretchr/testify/require"
)

// stepped is a connection that speaks TLS, of a scheduler that is stepped, and its peer.
type stepped struct {
	*servertest.Stepped
	*listener.Conn
	peer  *tls.Conn
	under *holding // what the peer speaks over
}

// step makes the handshake. keys get the peer's.
func step(t testing.TB, limits listener.Limits, keys ...io.Writer) *stepped {
	t.Helper()
	server, client := identities(t)
	for _, w := range keys {
		client.KeyLogWriter = w
	}
	l := servertest.New(t, act.Config{})
	c, raw := l.Conn("tcp", limits)
	under := &holding{Conn: raw}
	x := &stepped{l, c, tls.Client(under, client), under}
	shaken := make(chan error, 1)
	go func() { shaken <- x.peer.Handshake() }()
	over := false
	l.S.Spawn(act.Seq(c.Internals().Filtered(0, secure.Server(server, nil)), act.Func(func(*act.Task) act.Directive {
		over = true
		return act.Done
	})))
	l.Until("the handshake", func() bool { return over })
	require.NoError(t, servertest.Receive(t, shaken))
	return x
}

// read peeks until there is input, or an error other than an act.Blocked.
func (x *stepped) read() (in []byte, err error) {
	x.T.Helper()
	x.Until("input", func() (came bool) {
		x.Turn(func(*act.Task) {
			var p []byte
			p, err = x.Peek(1)
			in = bytes.Clone(p)
			_, blocked := err.(act.Blocked)
			came = !blocked
		})
		return came
	})
	return in, err
}

// stuff writes until n bytes are queued, since the kernel takes nothing.
func (x *stepped) stuff(n int) {
	x.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	x.Turn(func(*act.Task) {
		_, err := x.Write(make([]byte, n))
		require.NoError(x.T, err)
	})
	require.Greater(x.T, x.Queued(), n)
}

// The error is the one of a connection without TLS, not one that crypto/tls wraps around it, and not the fault of a peer's TLS.
func TestAResetIsTheErrorOfTheTransport(t *testing.T) {
	x := step(t, listener.Limits{})
	servertest.Reset(t, x.under.Conn)
	_, err := x.read()
	require.Equal(t, syscall.ECONNRESET, err)
	x.Abort()
}

// The peer's end does not hide that it has not got all.
func TestAnEndBehindASendThatFailedIsThatError(t *testing.T) {
	x := step(t, listener.Limits{})
	x.OS.Fail = servertest.Failing("send", syscall.EPIPE)
	x.Turn(func(*act.Task) {
		_, err := x.Write(make([]byte, 20_000))
		require.Equal(t, syscall.EPIPE, err)
	})
	require.NoError(t, x.peer.CloseWrite())
	x.For(5 * time.Millisecond) // it arrives
	_, err := x.read()
	require.Equal(t, syscall.EPIPE, err)
	x.Abort()
}

// A task that waits for room is woken when another one reads bytes that are not TLS.
func TestATaskThatWaitsForRoomLearnsThatTLSHasFailed(t *testing.T) {
	x := step(t, listener.Limits{High: 8 << 10})
	x.stuff(8 << 10)
	woken := 0
	x.S.Spawn(servertest.Waits(func(t *act.Task) {
		_, err := x.Write([]byte("x"))
		err.(act.Blocked).Arm(t)
	}, &woken))
	servertest.Send(t, x.peer.NetConn(), "what is no TLS")
	_, err := x.read()
	var fault *listener.PeerError
	require.ErrorAs(t, err, &fault)
	x.Until("it is woken", func() bool { return woken == 1 })
	x.S.Spawn(servertest.Waits(func(t *act.Task) { x.Next(t, nil) }, &woken))
	x.Until("so is one that waits for input later", func() bool { return woken == 2 })
	x.Abort()
}

// After close_notify there is nothing more to wait for, although the transport is open: a wait for input ends at once, and
// the connection is not idle, as one whose transport has ended is not.
func TestAfterTheEndAWaitForInputEnds(t *testing.T) {
	x := step(t, listener.Limits{})
	x.Turn(func(*act.Task) {
		_, err := x.Peek(1)
		require.Implements(t, (*act.Blocked)(nil), err)
	})
	_, idle := x.IdleSince()
	require.True(t, idle)
	require.NoError(t, x.peer.CloseWrite())
	_, err := x.read()
	require.Equal(t, io.EOF, err)
	woken := 0
	x.S.Spawn(servertest.Waits(func(t *act.Task) { x.Next(t, nil) }, &woken))
	x.Until("it is woken", func() bool { return woken == 1 })
	_, idle = x.IdleSince()
	require.False(t, idle)
	x.Abort()
}

// A connection with a part of a record is not idle, so it makes no room.
func TestAPartOfARecordIsNotIdle(t *testing.T) {
	x := step(t, listener.Limits{})
	idle := func() bool {
		x.Turn(func(*act.Task) { _, _ = x.Peek(1) })
		_, is := x.IdleSince()
		return is
	}
	x.Until("it is idle", idle)
	x.under.on = true
	servertest.Send(t, x.peer, "hello")
	record := x.under.held.String()
	servertest.Send(t, x.under.Conn, record[:7])
	x.Until("it is not idle", func() bool { return !idle() })
	servertest.Send(t, x.under.Conn, record[7:])
	in, err := x.read()
	require.NoError(t, err)
	require.Equal(t, "hello", string(in))
	x.Turn(func(*act.Task) { x.Discard(len(in)) })
	require.True(t, idle())
	x.Abort()
}

// A connection is not idle while crypto/tls has a part of a record for it.
func TestARecordThatIsReadInPartIsNotIdle(t *testing.T) {
	x := step(t, listener.Limits{Read: 100})
	servertest.Send(t, x.peer, string(noise(1000)))
	in, err := x.read()
	require.NoError(t, err)
	x.Turn(func(*act.Task) { x.Discard(len(in)) })
	require.Zero(t, x.Buffered())
	_, idle := x.IdleSince()
	require.False(t, idle)
	x.Abort()
}

// A handshake that has failed does not wait until the peer takes the alert.
func TestAnAlertThatCannotBeSentIsLost(t *testing.T) {
	server, client := identities(t)
	l := servertest.New(t, act.Config{})
	c, raw := l.Conn("tcp", listener.Limits{High: 1})
	l.OS.Fail = servertest.Failing("send", syscall.EAGAIN)
	servertest.Send(t, raw, string(clientHello(raw, client)))
	var failed error
	filter := c.Internals().Filtered(0, secure.Server(server, nil))
	l.S.Spawn(act.Func(func(t *act.Task) act.Directive {
		d := filter.Act(t)
		if d == act.Failed {
			failed = t.Err()
		}
		return d
	}))
	l.Until("it answers", func() bool { return c.Queued() > 0 })
	servertest.Send(t, raw, "what is no TLS")
	l.Until("it fails", func() bool { return failed != nil })
	require.ErrorContains(t, failed, "tls: ")
	c.Abort()
}

// TestStreams plays the suite of Streams with clients of crypto/tls.
func TestStreams(t *testing.T) {
	server, client := identities(t)
	filters := []listener.Filter{secure.Server(server, nil)}
	for _, v := range versions {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			streamtest.Run(t, streamtest.Sockets("tcp", filters, func(under net.Conn) net.Conn {
				c := tls.Client(under, version(client, v))
				if err := c.Handshake(); err != nil {
					panic(err)
				}
				return c
			}))
		})
	}
}
