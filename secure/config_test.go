package secure_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/coro"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
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

// describes is a handler that writes what was negotiated, in each of the styles.
var describes = map[string]func(*listener.Conn) act.Action{
	"action": func(c *listener.Conn) act.Action {
		_, _ = c.WriteString(described(secure.State(c)))
		return nil
	},
	"coroutine": coro.Serve(func(c *coro.Conn) error {
		_, err := io.WriteString(c, described(secure.State(c.Under())))
		return err
	}),
	"HTTP": (&httpd.Server{Handler: func(w *httpd.Response, r *httpd.Request) act.Action {
		_, _ = w.WriteString(described(secure.State(r.Conn())))
		return nil
	}}).Serve,
}

// A handler of each style sees version, suite, protocol, name and the client's certificate.
func TestStateForHandlersOfEachStyle(t *testing.T) {
	server, client := identities(t)
	visitor, err := secure.SelfSigned("a visitor")
	require.NoError(t, err)
	server.ClientAuth, server.NextProtos = tls.RequireAnyClientCert, []string{"http/1.1", "other"}
	client.Certificates, client.NextProtos = []tls.Certificate{visitor}, []string{"other", "http/1.1"}
	for style, handler := range describes {
		for _, v := range versions {
			t.Run(style+"/"+tls.VersionName(v), func(t *testing.T) {
				s := serve(t, &service.TCP{Handler: handler, Filters: []listener.Filter{secure.Server(server, nil)}})
				cfg := version(client, v)
				cfg.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
				c := s.dial(cfg)
				if style == "HTTP" {
					servertest.Send(t, c, "GET / HTTP/1.0\r\n\r\n")
				}
				got, err := io.ReadAll(c)
				require.NoError(t, err)
				_ = c.Close()
				want := described(tls.ConnectionState{Version: v, CipherSuite: c.ConnectionState().CipherSuite,
					NegotiatedProtocol: "http/1.1", ServerName: "localhost"}, true)
				want = strings.Replace(want, "nobody", "a visitor", 1)
				require.True(t, strings.HasSuffix(string(got), want), "%s", got)
				s.drain()
				s.withoutReports()
			})
		}
	}
	t.Run("a connection without TLS", func(t *testing.T) {
		s := serve(t, &service.TCP{Handler: describes["action"]})
		c := servertest.Dial(t, s.Addr())
		servertest.Expect(t, c, "no TLS")
		_ = c.Close()
		s.drain()
	})
}

// A client of net/http speaks HTTP over TLS, on one connection.
func TestNetHTTPSpeaksToHttpd(t *testing.T) {
	server, client := identities(t)
	s := serve(t, &service.TCP{Handler: describes["HTTP"], Filters: []listener.Filter{secure.Server(server, nil)}})
	transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true}
	for range 3 {
		answer, err := (&http.Client{Transport: transport}).Get("https://" + s.Addr().String())
		require.NoError(t, err)
		got, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		_ = answer.Body.Close()
		require.Contains(t, string(got), "TLS 1.3")
	}
	require.EqualValues(t, 1, s.Open())
	transport.CloseIdleConnections()
	s.drain()
}

// A client that shares no protocol, or no version, is refused with an alert.
func TestAClientThatSharesNothingIsRefused(t *testing.T) {
	server, client := identities(t)
	server.NextProtos, server.MinVersion = []string{"http/1.1"}, tls.VersionTLS13
	s := serve(t, overTLS(server))
	foreign := client.Clone()
	foreign.NextProtos = []string{"h2"}
	require.ErrorContains(t, s.handshake(foreign), "no application protocol")
	require.ErrorContains(t, s.handshake(version(client, tls.VersionTLS12)), "protocol version")
	s.drain()
	s.withoutReports()
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
			s := serve(t, &service.TCP{Handler: echo,
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

// The certificate is chosen by the name that the client asks for.
func TestCertificatesByName(t *testing.T) {
	names := []string{"one.example", "two.example"}
	server := &tls.Config{}
	for _, name := range names {
		cert, err := secure.SelfSigned(name)
		require.NoError(t, err)
		server.Certificates = append(server.Certificates, cert)
	}
	s := serve(t, overTLS(server))
	for i, name := range names {
		c := s.dial(&tls.Config{ServerName: name, InsecureSkipVerify: true})
		require.Equal(t, server.Certificates[i].Leaf.Raw, c.ConnectionState().PeerCertificates[0].Raw)
		halves(t, c)
	}
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

// longCertificate returns a certificate of n bytes and a few hundred.
func longCertificate(t testing.TB, n int) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: make([]byte, n)}}}
	der, err := x509.CreateCertificate(rand.Reader, &form, &form, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// stops is a connection that sends so many bytes, and nothing of the rest.
type stops struct {
	net.Conn
	left int
}

func (s *stops) Write(p []byte) (int, error) {
	n := min(len(p), s.left)
	s.left -= n
	_, err := s.Conn.Write(p[:n])
	return len(p), err
}

// The longest certificate that crypto/tls reads of a client has 256 KiB. Clients that stop in the middle of theirs hold up
// nobody.
func TestLongClientCertificates(t *testing.T) {
	server, client := identities(t)
	server.ClientAuth = tls.RequireAnyClientCert
	client.Certificates = []tls.Certificate{longCertificate(t, 255_000)}
	for _, v := range versions {
		tcp := overTLS(server)
		tcp.FilterTimeout = time.Minute // with the race detector these handshakes take long on a busy machine
		s := serve(t, tcp)
		cfg := version(client, v)
		var stopped []net.Conn
		var all, whole sync.WaitGroup
		for range tier.Choose(10, 10, 50) {
			c := servertest.Dial(t, s.Addr())
			stopped = append(stopped, c)
			all.Go(func() { _ = tls.Client(&stops{c, 150_000}, cfg).Handshake() })
			whole.Go(func() {
				c := tls.Client(servertest.Dial(t, s.Addr()), cfg)
				_ = c.SetDeadline(time.Now().Add(tcp.FilterTimeout))
				got := make([]byte, 1)
				_, err := c.Write([]byte("x"))
				if _, read := c.Read(got); err != nil || read != nil {
					t.Error(err, read)
				}
				_ = c.Close()
			})
		}
		longer := cfg.Clone()
		longer.Certificates = []tls.Certificate{longCertificate(t, 262_200)}
		require.Error(t, s.handshake(longer))
		whole.Wait()
		require.Eventually(t, func() bool { return s.Open() == len(stopped) }, servertest.Timeout, time.Millisecond)
		for _, c := range stopped {
			_ = c.Close()
		}
		all.Wait()
		s.drain()
		s.withoutReports()
	}
}

// resumes is a handler that writes the scheduler of the connection, and whether its session was resumed.
func resumes(c *listener.Conn) act.Action {
	state, _ := secure.State(c)
	fmt.Fprintf(c, "%d %v", c.Scheduler().Index(), state.DidResume)
	return nil
}

// visit makes a handshake, and returns what resumes writes.
func (v *serving) visit(cfg *tls.Config) (scheduler int, resumed bool) {
	v.T.Helper()
	c := v.dial(cfg)
	got, err := io.ReadAll(c)
	require.NoError(v.T, err)
	_ = c.Close()
	_, err = fmt.Sscan(string(got), &scheduler, &resumed)
	require.NoError(v.T, err)
	require.Equal(v.T, resumed, c.ConnectionState().DidResume)
	return scheduler, resumed
}

// remembering returns cfg for one version, with a memory for sessions.
func remembering(cfg *tls.Config, v uint16) *tls.Config {
	cfg = version(cfg, v)
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(10)
	return cfg
}

// A session of one scheduler is resumed on any other.
func TestSessionsAreResumedOnAllSchedulers(t *testing.T) {
	server, client := identities(t)
	for _, v := range versions {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			s := serveOn(t, 2, &service.TCP{Handler: resumes, Filters: []listener.Filter{secure.Server(server, nil)}})
			cfg := remembering(client, v)
			first, resumed := s.visit(cfg)
			require.False(t, resumed)
			for at, n := first, 0; at == first; n++ {
				require.Less(t, n, 200, "the kernel gives all connections to one scheduler")
				at, resumed = s.visit(cfg)
				require.True(t, resumed)
			}
			s.drain()
		})
	}
}

// Servers with the same keys resume each other's sessions, and keys that are set later are in force at once: the config is
// used as it is.
func TestSessionsAreResumedByKeys(t *testing.T) {
	base, client := identities(t)
	old, new := [32]byte{1}, [32]byte{2}
	for _, v := range versions {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			var configs []*tls.Config
			var servers []*serving
			for range 2 {
				cfg := &tls.Config{Certificates: base.Certificates}
				cfg.SetSessionTicketKeys([][32]byte{old})
				configs = append(configs, cfg)
				servers = append(servers, serve(t, &service.TCP{Handler: resumes,
					Filters: []listener.Filter{secure.Server(cfg, nil)}}))
			}
			cfg := remembering(client, v)
			expect := func(server int, resumed bool, why string) {
				t.Helper()
				_, did := servers[server].visit(cfg)
				require.Equal(t, resumed, did, why)
			}
			expect(0, false, "no session yet")
			expect(1, true, "another server with the same key")
			configs[1].SetSessionTicketKeys([][32]byte{new})
			expect(1, false, "its key is another one now")
			expect(0, false, "a session of the new key")
			configs[0].SetSessionTicketKeys([][32]byte{new, old})
			expect(0, true, "the old key still opens sessions")
			expect(1, true, "and new ones have the new key")
			for _, s := range servers {
				s.drain()
			}
		})
	}
}

// keyLog is a KeyLogWriter of any goroutine.
type keyLog struct {
	sync.Mutex
	bytes.Buffer
}

func (l *keyLog) Write(p []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(p)
}

// lines returns the lines that are there, in order of the alphabet.
func (l *keyLog) lines() []string {
	l.Lock()
	defer l.Unlock()
	return slices.Sorted(strings.Lines(l.String()))
}

// Both sides log the same keys, from which Wireshark reads a connection.
func TestKeyLogs(t *testing.T) {
	server, client := identities(t)
	for _, v := range versions {
		var ours, theirs keyLog
		server.KeyLogWriter, client.KeyLogWriter = &ours, &theirs
		s := serve(t, overTLS(server))
		c := s.dial(version(client, v))
		servertest.Echo(t, c, "x")
		require.NotEmpty(t, ours.lines())
		require.Equal(t, theirs.lines(), ours.lines())
		halves(t, c)
		s.drain()
	}
}
