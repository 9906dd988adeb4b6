package coro_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/secure"
)

// eager is the recipe of the package's documentation.
type eager struct{ *coro.Conn }

func (e eager) Write(p []byte) (int, error) { return e.Under().Write(p) }

func (e eager) give(co *coro.Co, secret *tls.Conn, p []byte) error {
	for part := range slices.Chunk(p, 16<<10) {
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

// Each direction of a tls.Conn has a coroutine, and the client takes nothing before it has sent all.
func TestOneCoroutineReadsWhileTheOtherWrites(t *testing.T) {
	identity, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(identity.Leaf)
	data := noise(2 << 20)
	v := serve(t, func(c *coro.Conn) error {
		e := eager{c}
		secret := tls.Server(e, &tls.Config{Certificates: []tls.Certificate{identity}})
		if err := secret.Handshake(); err != nil {
			return err
		}
		return both(c.Co(), func(*coro.Co) error {
			got := make([]byte, len(data))
			if _, err := io.ReadFull(secret, got); err != nil || !bytes.Equal(data, got) {
				return errors.Join(err, errors.New("other bytes"))
			}
			return nil
		}, func(co *coro.Co) error { return e.give(co, secret, data) })
	})
	c := tls.Client(v.dial(), &tls.Config{RootCAs: roots, ServerName: "localhost"})
	_, err = c.Write(data)
	require.NoError(t, err)
	got := make([]byte, len(data))
	_, err = io.ReadFull(c, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, c.Close())
	v.drain()
}
