package secure_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
)

// described says what was negotiated.
func described(state tls.ConnectionState, ok bool) string {
	if !ok {
		return "no TLS"
	}
	peer := "nobody"
	if len(state.PeerCertificates) > 0 {
		peer = state.PeerCertificates[0].Subject.CommonName
	}
	return fmt.Sprintf("%s %s %q for %q from %s, resumed %v", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite),
		state.NegotiatedProtocol, state.ServerName, peer, state.DidResume)
}

// describes is a handler that writes what was negotiated.
func describes(c *listener.Conn) act.Action {
	_, _ = c.WriteString(described(secure.State(c)))
	return nil
}

// A handler sees version, suite, protocol, name and the client's certificate.
func TestState(t *testing.T) {
	server, client := identities(t)
	visitor, err := secure.SelfSigned("a visitor")
	require.NoError(t, err)
	server.ClientAuth, server.NextProtos = tls.RequireAnyClientCert, []string{"http/1.1", "other"}
	client.Certificates, client.NextProtos = []tls.Certificate{visitor}, []string{"other", "http/1.1"}
	client.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	s := serve(t, &service.Listener{Handler: describes, Filters: []listener.Filter{secure.Server(server, nil)}})
	for _, v := range versions {
		c := s.dial(version(client, v))
		got, err := io.ReadAll(c)
		require.NoError(t, err)
		_ = c.Close()
		want := described(tls.ConnectionState{Version: v, CipherSuite: c.ConnectionState().CipherSuite,
			NegotiatedProtocol: "http/1.1", ServerName: "localhost"}, true)
		require.Equal(t, strings.Replace(want, "nobody", "a visitor", 1), string(got))
	}
	s.drain()
	s.withoutReports()

	s = serve(t, &service.Listener{Handler: describes})
	c := servertest.Dial(t, s.Addr())
	servertest.Expect(t, c, "no TLS")
	_ = c.Close()
	s.drain()
}

// While functions of the config wait, other handshakes are made, and connections that are open go on.
func TestSlowFunctionsOfTheConfigHoldUpNobody(t *testing.T) {
	base, client := identities(t)
	for _, name := range []string{"GetCertificate", "GetConfigForClient"} {
		t.Run(name, func(t *testing.T) {
			waiting, release := make(chan struct{}, 10), make(chan struct{})
			wait := func(hello *tls.ClientHelloInfo) {
				if hello.ServerName == "slow" {
					waiting <- struct{}{}
					<-release
				}
			}
			server := &tls.Config{}
			if name == "GetCertificate" {
				server.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
					wait(hello)
					return &base.Certificates[0], nil
				}
			} else {
				server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
					wait(hello)
					return base, nil
				}
			}
			s := serve(t, &service.Listener{Handler: echo.Echo,
				Filters: []listener.Filter{secure.Server(server, &secure.Handshakes{Slots: 1})}})
			open := s.dial(client)
			slow := client.Clone()
			slow.ServerName, slow.InsecureSkipVerify = "slow", true
			ended := make(chan error, 3)
			for range cap(ended) {
				c := tls.Client(servertest.Dial(t, s.Addr()), slow)
				go func() {
					err := c.Handshake()
					_ = c.Close()
					ended <- err
				}()
			}
			for range cap(ended) {
				servertest.Receive(t, waiting)
			}
			for range 3 {
				servertest.Echo(t, open, "still")
				c := s.dial(client)
				servertest.Echo(t, c, "new")
				halves(t, c)
			}
			require.Empty(t, ended)
			close(release)
			for range cap(ended) {
				require.NoError(t, servertest.Receive(t, ended))
			}
			halves(t, open)
			s.drain()
		})
	}
}

// Functions of the config may choose by the addresses of both sides.
func TestFunctionsOfTheConfigSeeTheAddresses(t *testing.T) {
	server, client := identities(t)
	seen := make(chan [2]string, 1)
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		seen <- [2]string{hello.Conn.LocalAddr().String(), hello.Conn.RemoteAddr().String()}
		return nil, nil
	}
	s := serve(t, overTLS(server))
	c := s.dial(client)
	require.Equal(t, [2]string{s.Addr().String(), c.LocalAddr().String()}, servertest.Receive(t, seen))
	halves(t, c)
	s.drain()
}

// A client without a certificate, or with one that nobody vouches for, is refused, and learns why.
func TestClientCertificates(t *testing.T) {
	server, client := identities(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, client.RootCAs
	stranger, err := secure.SelfSigned("stranger")
	require.NoError(t, err)
	for _, v := range versions {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			s := serve(t, overTLS(server))
			cfg := version(client, v)
			require.Error(t, s.handshake(cfg), "without one")
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &stranger, nil }
			require.ErrorContains(t, s.handshake(cfg), "remote error")
			cfg.GetClientCertificate = nil
			cfg.Certificates = server.Certificates
			c := s.dial(cfg)
			servertest.Echo(t, c, "x")
			halves(t, c)
			s.drain()
			s.withoutReports()
			require.Equal(t, 2, s.Logs.FilterMessage("a connection is refused").Len())
		})
	}
}

func TestWhatAConnectionOfTLSSays(t *testing.T) {
	config, trusting := identities(t)
	release := make(chan struct{})
	slow := config.Clone()
	slow.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		<-release
		return nil, nil
	}
	v := overTLS(slow)
	v.Address = "127.0.0.1:0"
	l := servertest.New(t, act.Config{})
	require.NoError(t, v.Setup(l.S))
	accepts := "connections to " + v.Addr().String()

	raw, err := net.Dial("tcp", v.Addr().String())
	require.NoError(t, err)
	defer func() { _ = raw.Close() }()
	filter, from := "a filter of the connection: TLS handshake", "input from "+raw.LocalAddr().String()
	l.UntilSaid(accepts, filter, from)
	require.EqualValues(t, 1, servertest.CountsOf(l.S)["handshakes_waiting"])

	c := tls.Client(raw, trusting)
	shaken := make(chan error, 1)
	go func() { shaken <- c.Handshake() }()
	l.UntilSaid(accepts, filter, "a step of its TLS handshake, on another goroutine")
	require.EqualValues(t, 1, servertest.CountsOf(l.S)["handshakes"])
	require.Zero(t, servertest.CountsOf(l.S)["handshakes_waiting"])
	close(release)
	l.UntilSaid(accepts, from)
	require.NoError(t, <-shaken)
	require.Zero(t, servertest.CountsOf(l.S)["handshakes"])

	found := -1
	l.S.Internals().EachTask(1, func(x *act.Task) bool {
		found = max(found, l.S.Internals().Descriptor(x))
		return true
	})
	require.Greater(t, found, 2, "that of the socket below TLS")
}
