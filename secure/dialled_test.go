package secure_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// call is a task that connects, sends a message, ends its side, and reads until the end.
type call struct {
	connect listener.Connect
	sends   string
	got     string
	state   string
	err     error
}

// run makes the call on a Group of its own, after other set-up functions.
func (x *call) run(t *testing.T, before ...func(*act.Scheduler) error) *call {
	t.Helper()
	body := coro.New(func(co *coro.Co) error {
		if err := co.Do(&x.connect); err != nil {
			x.err = err
			return nil
		}
		c := co.Conn(x.connect.Conn())
		defer func() { _ = c.Close() }()
		x.state = described(secure.State(c.Under()))
		_, err := io.WriteString(c, x.sends)
		var got []byte
		if err == nil && x.sends != "" {
			err = c.CloseWrite()
		}
		if err == nil {
			got, err = io.ReadAll(c)
		}
		x.got, x.err = string(got), err
		return nil
	})
	r := servertest.Start(t, act.Config{Schedulers: 1}, append(before, func(s *act.Scheduler) error {
		s.Spawn(body)
		return nil
	})...)
	require.NoError(t, r.End())
	return x
}

// dials returns a call that goes to address with TLS.
func dials(address net.Addr, config *tls.Config, sends string) *call {
	return &call{sends: sends, connect: listener.Connect{Address: address.String(),
		Filters: []listener.Filter{secure.Client(config, nil)}}}
}

// accepts starts a server that gives each connection to f, and closes it.
func accepts(t *testing.T, f func(net.Conn)) net.Addr {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(servertest.Timeout))
			f(c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-ended
	})
	return ln.Addr()
}

// standard starts a server of crypto/tls that echoes.
func standard(t *testing.T, config *tls.Config) net.Addr {
	return accepts(t, func(c net.Conn) {
		secret := tls.Server(c, config)
		_, _ = io.Copy(secret, secret)
		_ = secret.Close()
	})
}

// What is wrong with a server is in the error of the dial.
func TestAServerThatIsNotTheRightOne(t *testing.T) {
	server, client := identities(t)
	other, strange := client.Clone(), client.Clone()
	other.ServerName = "other.example"
	strange.RootCAs = x509.NewCertPool()
	at := standard(t, server)
	for _, v := range versions {
		var connect *net.OpError
		var name x509.HostnameError
		x := dials(at, version(other, v), "x").run(t)
		require.ErrorAs(t, x.err, &connect)
		require.ErrorAs(t, x.err, &name)
		require.Equal(t, "other.example", name.Host)

		var authority x509.UnknownAuthorityError
		var certificate *tls.CertificateVerificationError
		x = dials(at, version(strange, v), "x").run(t)
		require.ErrorAs(t, x.err, &connect)
		require.ErrorAs(t, x.err, &authority)
		require.ErrorAs(t, x.err, &certificate)
	}
}

// A server that wants a certificate refuses a client without one. With TLS 1.3 that comes after the handshake.
func TestADialledConnectionWithAClientCertificate(t *testing.T) {
	server, client := identities(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, client.RootCAs
	at := standard(t, server)
	for _, v := range versions {
		cfg := version(client, v)
		x := dials(at, cfg, "").run(t)
		require.Error(t, x.err)
		var connect *net.OpError
		require.Equal(t, v == tls.VersionTLS12, errors.As(x.err, &connect) && connect.Op == "dial", "%v", x.err)
		if v == tls.VersionTLS13 {
			var fault *listener.PeerError
			require.ErrorAs(t, x.err, &fault)
			require.ErrorContains(t, x.err, "certificate required")
		}
		cfg.Certificates = server.Certificates
		x = dials(at, cfg, "hello").run(t)
		require.NoError(t, x.err)
		require.Equal(t, "hello", x.got)
	}
}

// Without a name, sessions belong to the server's address, which crypto/tls asks for in the handshake and after it.
func TestASessionOfAServerWithoutAName(t *testing.T) {
	server, client := identities(t)
	client.ServerName, client.InsecureSkipVerify = "", true
	at := standard(t, server)
	for _, v := range versions {
		cfg := remembering(client, v)
		for _, resumed := range []string{"resumed false", "resumed true"} {
			x := dials(at, cfg, "x").run(t)
			require.NoError(t, x.err)
			require.Contains(t, x.state, resumed)
		}
	}
}

// A server that does not speak TLS is noticed by its first bytes, even if it then waits.
func TestAServerThatDoesNotSpeakTLS(t *testing.T) {
	_, client := identities(t)
	for _, banner := range []string{"SSH-2.0-OpenSSH_9.6\r\n", "220 mail.example ESMTP\r\n", "+OK POP3 ready\r\n",
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\x00\x00\x00\x00\x00\x00", "\x16\x03\x03\xff\xff", "\x80\x2e\x01\x00\x02"} {
		at := accepts(t, func(c net.Conn) {
			_, _ = io.WriteString(c, banner[:3])
			time.Sleep(5 * time.Millisecond)
			_, _ = io.WriteString(c, banner[3:])
			_, _ = io.Copy(io.Discard, c) // until the client has closed
		})
		x := dials(at, client, "x").run(t)
		var connect *net.OpError
		require.ErrorAs(t, x.err, &connect)
		var header tls.RecordHeaderError
		require.ErrorAs(t, x.err, &header, "%q", banner)
	}
}
