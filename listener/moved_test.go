package listener_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/engine"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
	"github.com/daimon-go/daimon/secure"
)

// shuttle sends bytes back, and moves to the other scheduler whenever it is idle.
type shuttle struct {
	of    []*act.Scheduler
	moves int // left
	ended chan error
}

func (x *shuttle) on(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			return c.Next(t, err)
		}
		_, err = c.Write(in)
		c.Discard(len(in))
		if err != nil || c.Flush() != nil { // the answer may come while the connection moves
			return t.Fail(err)
		}
		m, err := c.Internals().Release()
		if err == engine.ErrInUse {
			return act.Yield
		}
		if err != nil {
			return t.Fail(err)
		}
		if x.moves--; x.moves == 0 {
			m.Close()
			x.ended <- nil
			return act.Done
		}
		there := x.of[1-t.Scheduler().Index()]
		if err := there.Post(func(s *act.Scheduler) {
			if c, err := m.Adopt(s); err != nil {
				x.ended <- err
			} else {
				s.Spawn(x.on(c))
			}
		}); err != nil {
			return t.Fail(err)
		}
		return act.Done
	})
}

// A connection moves thousands of times between two schedulers, while its peer sends. No byte is lost, and no wake-up.
func TestAConnectionMovesWhileBytesArrive(t *testing.T) {
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	client := secure.Client(&tls.Config{RootCAs: roots, ServerName: "localhost"}, nil)
	for name, row := range map[string]struct {
		network string
		filters []listener.Filter
		moves   int
	}{"TCP": {"tcp", nil, 10_000}, "Unix": {"unix", nil, 500}, "TLS": {"tcp", []listener.Filter{client}, 10_000}} {
		t.Run(name, func(t *testing.T) {
			at, prefix := "127.0.0.1:0", ""
			if row.network == "unix" {
				at, prefix = filepath.Join(servertest.ShortDir(t), "s"), "unix:"
			}
			ln, err := net.Listen(row.network, at)
			require.NoError(t, err)
			defer func() { _ = ln.Close() }()
			x := &shuttle{moves: row.moves, ended: make(chan error, 1)}
			connect := &listener.Connect{Address: prefix + ln.Addr().String(), Filters: row.filters}
			r := servertest.Start(t, act.Config{Schedulers: 2}, func(s *act.Scheduler) error {
				if x.of = s.Group().Schedulers(); s.Index() == 0 {
					s.Spawn(act.Seq(connect, act.Func(func(*act.Task) act.Directive {
						s.Spawn(x.on(connect.Conn()))
						return act.Done
					})))
				}
				return nil
			})
			peer, err := ln.Accept()
			require.NoError(t, err)
			if row.filters != nil {
				peer = tls.Server(peer, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			defer func() { _ = peer.Close() }()
			for i := byte(0); ; i++ {
				if _, err = peer.Write([]byte{i}); err != nil {
					break
				}
				var got [1]byte
				if _, err = io.ReadFull(peer, got[:]); err != nil {
					break
				}
				require.Equal(t, i, got[0])
			}
			require.NoError(t, servertest.Receive(t, x.ended))
			require.NoError(t, r.End())
		})
	}
}

func TestAConnectionThatIsInUseDoesNotMove(t *testing.T) {
	for name, row := range map[string]struct {
		use func(t *testing.T, l *servertest.Stepped, c *listener.Conn, peer net.Conn)
		err error
	}{
		"unread bytes": {func(t *testing.T, l *servertest.Stepped, c *listener.Conn, peer net.Conn) {
			servertest.Send(t, peer, "x")
			readable(l, c, 1)
		}, engine.ErrInUse},
		"queued bytes": {func(t *testing.T, l *servertest.Stepped, c *listener.Conn, _ net.Conn) {
			l.OS.Most = 1
			_, err := c.WriteString("xyz")
			require.NoError(t, err)
			require.NoError(t, c.Flush())
		}, engine.ErrInUse},
		"a closed write side": {func(t *testing.T, _ *servertest.Stepped, c *listener.Conn, _ net.Conn) {
			require.NoError(t, c.CloseWrite())
		}, engine.ErrInUse},
		"the peer's end": {func(t *testing.T, l *servertest.Stepped, c *listener.Conn, peer net.Conn) {
			require.NoError(t, peer.Close())
			l.Until("the end", func() bool { _, err := c.Peek(1); return err == io.EOF })
		}, io.EOF},
		"a filter": {func(t *testing.T, _ *servertest.Stepped, c *listener.Conn, _ net.Conn) {
			require.NoError(t, c.Wrap(func(s monitor.Stream) monitor.Stream { return filtered{s} }))
		}, errors.ErrUnsupported},
		"closed": {func(_ *testing.T, _ *servertest.Stepped, c *listener.Conn, _ net.Conn) { c.Abort() }, net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			c, peer := l.Conn("tcp", listener.Limits{})
			row.use(t, l, c, peer)
			l.Turn(func(*act.Task) {
				_, err := c.Internals().Release()
				require.Equal(t, row.err, err)
			})
			c.Abort()
		})
	}
}

// filtered is a Stream that adds nothing.
type filtered struct{ monitor.Stream }

func (f filtered) Unwrap() monitor.Stream { return f.Stream }

// A connection between two schedulers is closed although both have ended.
func TestAMovedConnectionOutlivesItsScheduler(t *testing.T) {
	l := servertest.New(t, act.Config{})
	c, peer := l.Conn("tcp", listener.Limits{})
	m, err := c.Internals().Release()
	require.NoError(t, err)
	require.Equal(t, net.ErrClosed, c.Sent())
	require.NoError(t, l.S.Close())
	m.Close()
	servertest.ExpectEOF(t, peer)
}
