package coro_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/secure"
)

// trust dials and makes a handshake.
func (v *server) trust(cfg *tls.Config) *tls.Conn {
	c := tls.Client(v.dial(), cfg)
	require.NoError(v.T, c.Handshake())
	return c
}

// ended returns err unless it is that of an ordinary end.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// eager is a Conn as the transport of a tls.Conn that two coroutines use: its Write does not wait. A tls.Conn locks a
// mutex while it writes, and its Read locks it too, for an alert for example. If its holder were suspended, the other
// coroutine would block the thread for ever.
type eager struct{ *coro.Conn }

func (e eager) Write(p []byte) (int, error) { return e.Under().Write(p) }

// give writes p to the tls.Conn over e, and waits before each part until there is room.
func (e eager) give(co *coro.Co, secret *tls.Conn, p []byte) error {
	for part := range slices.Chunk(p, 16<<10) { // less than Limits.High, with all that TLS adds
		for err := e.Under().Sent(); err != nil; err = e.Under().Sent() {
			if err := co.Unblock(err); err != nil {
				return err
			}
		}
		if _, err := secret.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// Each direction has a coroutine, so writing does not wait for reading.
func TestOneCoroutineReadsWhileTheOtherWrites(t *testing.T) {
	identity, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	serverSide, clientSide := &tls.Config{Certificates: []tls.Certificate{identity}}, &tls.Config{RootCAs: roots, ServerName: "localhost"}
	const much = 2 << 20
	talk := func(co *coro.Co, rw io.ReadWriter, write func(co *coro.Co) error) error {
		return both(co,
			func(co *coro.Co) error {
				got := make([]byte, much)
				if _, err := io.ReadFull(rw, got); err != nil {
					return err
				}
				if !bytes.Equal(noise(much), got) {
					return errors.New("other bytes")
				}
				return nil
			},
			write)
	}
	plain := func(c *coro.Conn) error {
		return talk(c.Co(), c, func(*coro.Co) error {
			_, err := c.Write(noise(much))
			return err
		})
	}
	client := func(c net.Conn) error {
		defer func() { _ = c.Close() }()
		return together(2, func(i int) error {
			if i == 0 {
				_, err := c.Write(noise(much))
				return err
			}
			got := make([]byte, much)
			_, err := io.ReadFull(c, got)
			if err == nil && !bytes.Equal(noise(much), got) {
				err = errors.New("other bytes")
			}
			return err
		})
	}
	t.Run("TLS", func(t *testing.T) {
		v := serve(t, "tcp", func(c *coro.Conn) error {
			e := eager{c}
			secret := tls.Server(e, serverSide)
			if err := secret.Handshake(); err != nil {
				return err
			}
			return talk(c.Co(), secret, func(co *coro.Co) error { return e.give(co, secret, noise(much)) })
		})
		require.NoError(t, client(v.trust(clientSide)))
		v.drain()
	})
	t.Run("plain", func(t *testing.T) {
		v := serving{handler: coro.Serve(plain), cfg: act.Config{Schedulers: 1}}.start(t)
		all := make([]net.Conn, 5)
		for i := range all {
			all[i] = v.dial()
		}
		require.NoError(t, together(len(all), func(i int) error { return client(all[i]) }))
		v.drain()
	})
}
