package coro_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
)

// identities makes a self-signed certificate, for a server and for clients that trust it.
func identities(t testing.TB) (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, &form, &form, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(signed)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots, ServerName: "localhost"}
}

// encrypted runs body over TLS and sends close_notify at the end.
func encrypted(cfg *tls.Config, body func(c *coro.Conn, secret *tls.Conn) error) func(*coro.Conn) error {
	return func(c *coro.Conn) error {
		secret := tls.Server(c, cfg)
		if err := secret.Handshake(); err != nil {
			return err
		}
		if err := body(c, secret); err != nil {
			return err
		}
		return secret.Close()
	}
}

// trust dials and makes a handshake.
func (v *server) trust(cfg *tls.Config) *tls.Conn {
	c := tls.Client(v.dial(), cfg)
	require.NoError(v.T, c.Handshake())
	return c
}

func TestCryptoTLSServes(t *testing.T) {
	serverSide, clientSide := identities(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, network := range networks {
			t.Run(tls.VersionName(version)+" over "+network, func(t *testing.T) {
				cfg := clientSide.Clone()
				cfg.MinVersion, cfg.MaxVersion = version, version
				v := serve(t, network, encrypted(serverSide, func(_ *coro.Conn, secret *tls.Conn) error {
					_, err := io.Copy(secret, secret)
					return err
				}))
				all := make([]*tls.Conn, 20)
				for i := range all {
					all[i] = v.trust(cfg)
				}
				require.NoError(t, together(len(all), func(i int) error { return echoed(all[i], noise(10_000*i)) }), "and ends with a close_notify")
				require.NoError(t, echoed(v.trust(cfg), noise(1<<20)))
				v.drain()
			})
		}
	}
}

// ended returns err unless it is that of an ordinary end.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func TestACoroutineIsATLSClient(t *testing.T) {
	site := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello over %s", r.Proto)
	}))
	defer site.Close()
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	l := bench(t)
	answer := ""
	p := play(l, func(co *coro.Co) error {
		c, err := coro.Dial(co, site.Listener.Addr().String(), listener.Limits{})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		secret := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "example.com"})
		if _, err := io.WriteString(secret, "GET / HTTP/1.0\r\nHost: example.com\r\n\r\n"); err != nil {
			return err
		}
		all, err := io.ReadAll(secret)
		answer = string(all)
		return errors.Join(err, secret.Close())
	})
	require.NoError(t, p.end())
	require.Contains(t, answer, "hello over HTTP/1.0")
}

// A TLS connection can be used after any time-out, as over package net.
func TestTLSGoesOnAfterATimeOut(t *testing.T) {
	serverSide, clientSide := identities(t)
	for name, bounded := range map[string]func(c *coro.Conn, f func() error) error{
		"a deadline": func(c *coro.Conn, f func() error) error {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			defer func() { _ = c.SetReadDeadline(time.Time{}) }()
			return f()
		},
		"Within": func(c *coro.Conn, f func() error) error { return c.Co().Within(5*time.Millisecond, f) },
	} {
		t.Run(name, func(t *testing.T) {
			late := make(chan error, 1)
			v := serve(t, "tcp", encrypted(serverSide, func(c *coro.Conn, secret *tls.Conn) error {
				late <- bounded(c, func() error { _, err := secret.Read(make([]byte, 1)); return err })
				_, err := io.Copy(secret, secret)
				return err
			}))
			c := v.trust(clientSide)
			require.ErrorIs(t, servertest.Receive(t, late), os.ErrDeadlineExceeded)
			require.NoError(t, echoed(c, noise(1000)))
			v.drain()
		})
	}
}

func TestAHandshakeIsBounded(t *testing.T) {
	serverSide, _ := identities(t)
	for name, handshake := range map[string]func(c *coro.Conn, secret *tls.Conn) error{
		"by a deadline": func(c *coro.Conn, secret *tls.Conn) error {
			_ = c.SetDeadline(time.Now().Add(10 * time.Millisecond))
			return secret.Handshake()
		},
		"by Within": func(c *coro.Conn, secret *tls.Conn) error {
			return c.Co().Within(10*time.Millisecond, secret.Handshake)
		},
	} {
		for _, say := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
			t.Run(name+fmt.Sprintf(" after %d bytes", len(say)), func(t *testing.T) {
				result := make(chan error, 1)
				v := serve(t, "tcp", func(c *coro.Conn) error {
					result <- handshake(c, tls.Server(c, serverSide))
					return nil
				})
				c := v.dial()
				servertest.Send(t, c, say)
				require.ErrorIs(t, servertest.Receive(t, result), os.ErrDeadlineExceeded)
				servertest.ExpectEOF(t, c)
				_ = c.Close()
				v.drain()
			})
		}
	}
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

// A bad record makes the reader send an alert while the writer waits.
func TestOtherConnectionsGoOnWhenAPeerSpoilsTLS(t *testing.T) {
	serverSide, clientSide := identities(t)
	v := serving{handler: coro.Serve(func(c *coro.Conn) error {
		e := eager{c}
		secret := tls.Server(e, serverSide)
		if err := secret.Handshake(); err != nil {
			return err
		}
		err := both(c.Co(),
			func(co *coro.Co) error {
				_, err := io.Copy(io.Discard, secret)
				_ = c.Close()
				return err
			},
			func(co *coro.Co) error { return e.give(co, secret, noise(32<<20)) })
		require.ErrorContains(panicking{}, err, "bad record MAC")
		require.ErrorIs(panicking{}, err, net.ErrClosed, "the writer is told")
		return nil
	}), cfg: act.Config{Schedulers: 1}}.start(t)
	c := v.trust(clientSide)
	time.Sleep(100 * time.Millisecond) // the writer is held up
	servertest.Send(t, c.NetConn(), "\x17\x03\x03\x00\x20 this is 32 bytes, and no record ")
	require.NoError(t, v.trust(clientSide).Close())
	_ = c.NetConn().Close()
	v.Group.Shutdown(servertest.Drain)
	require.NoError(t, v.End())
}

// Each direction has a coroutine, so writing does not wait for reading.
func TestOneCoroutineReadsWhileTheOtherWrites(t *testing.T) {
	serverSide, clientSide := identities(t)
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
	t.Run("plain", func(t *testing.T) {
		for _, network := range networks {
			v := serve(t, network, plain)
			require.NoError(t, client(v.dial()), network)
			v.drain()
		}
	})
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
	t.Run("plain, on one scheduler with others", func(t *testing.T) {
		v := serving{handler: coro.Serve(plain), cfg: act.Config{Schedulers: 1}}.start(t)
		all := make([]net.Conn, 5)
		for i := range all {
			all[i] = v.dial()
		}
		require.NoError(t, together(len(all), func(i int) error { return client(all[i]) }))
		v.drain()
	})
}
