package secure_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// identities returns the config of a server with a certificate of its own, and that of clients that trust it.
func identities(t testing.TB) (server, client *tls.Config) {
	cert, err := secure.SelfSigned()
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: roots, ServerName: "localhost"}
}

// version returns cfg restricted to one version of TLS.
func version(cfg *tls.Config, v uint16) *tls.Config {
	cfg = cfg.Clone()
	cfg.MinVersion, cfg.MaxVersion = v, v
	return cfg
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// serving is a server of TLS that runs while the test goes on.
type serving struct {
	*servertest.Running
	*service.Listener
}

// serve starts a server on one scheduler.
func serve(t testing.TB, v *service.Listener) *serving { return serveOn(t, 1, v) }

// serveOn starts a server on n schedulers.
func serveOn(t testing.TB, n int, v *service.Listener, before ...func(*act.Scheduler) error) *serving {
	return serveWith(t, act.Config{Schedulers: n}, v, before...)
}

func serveWith(t testing.TB, cfg act.Config, v *service.Listener, before ...func(*act.Scheduler) error) *serving {
	v.Address = "127.0.0.1:0"
	return &serving{servertest.Start(t, cfg, append(before, v.Setup)...), v}
}

// simulated is an Executor as that of a simulation, which has handshakes computed in turns.
type simulated struct{}

func (simulated) Execute(f func())           { go f() }
func (x simulated) Reserve(int) act.Executor { return x }
func (simulated) Wait(func() bool)           { panic("nothing waits in a test without a world") }

// overTLS returns a service that echoes over TLS.
func overTLS(config *tls.Config) *service.Listener {
	return &service.Listener{Handler: echo.Echo, Filters: []listener.Filter{secure.Server(config, nil)}}
}

// withoutReports requires that nothing was logged at a level above debug.
func (v *serving) withoutReports() {
	v.T.Helper()
	for _, line := range v.Logs.All() {
		require.LessOrEqual(v.T, line.Level, zap.InfoLevel, "%s %v", line.Message, line.ContextMap())
	}
}

// dial makes a handshake as a client of crypto/tls.
func (v *serving) dial(cfg *tls.Config) *tls.Conn {
	v.T.Helper()
	c := tls.Client(servertest.Dial(v.T, v.Addr()), cfg)
	require.NoError(v.T, c.Handshake())
	return c
}

// handshake makes a handshake as a client of crypto/tls, reads a byte and closes: with TLS 1.3 a client learns later than with
// its handshake what the server thinks of it. The error of a server that sends nothing is io.EOF.
func (v *serving) handshake(cfg *tls.Config) error {
	c := tls.Client(servertest.Dial(v.T, v.Addr()), cfg)
	defer func() { _ = c.Close() }()
	if err := c.Handshake(); err != nil {
		_ = c.NetConn().Close()
		return err
	}
	_, err := c.Read(make([]byte, 1))
	return err
}

// drain ends the server when its connections have ended.
func (v *serving) drain() {
	v.T.Helper()
	v.Running.Group.Shutdown(servertest.Drain)
	require.NoError(v.T, v.End())
}

// noise returns n bytes, always the same.
func noise(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(p)
	return p
}

// halves ends the write side of a client, requires that the peer sends nothing more and ends its own, and closes.
func halves(t testing.TB, c *tls.Conn) {
	t.Helper()
	require.NoError(t, c.CloseWrite())
	servertest.ExpectEOF(t, c)
	_ = c.Close()
}

// holding keeps what is written while on is set.
type holding struct {
	net.Conn
	held bytes.Buffer
	on   bool
}

func (h *holding) Write(p []byte) (int, error) {
	if h.on {
		return h.held.Write(p)
	}
	return h.Conn.Write(p)
}

// stalls makes n clients that send the first part of a ClientHello, or all of it, and then nothing.
func (v *serving) stalls(n, part int, cfg *tls.Config) (all []net.Conn) {
	v.T.Helper()
	for range n {
		c := servertest.Dial(v.T, v.Addr())
		stall(v.T, c, part, cfg)
		all = append(all, c)
	}
	return all
}

// stall sends so many hundredths of a ClientHello.
func stall(t testing.TB, c net.Conn, part int, cfg *tls.Config) {
	t.Helper()
	hello := clientHello(c, cfg)
	servertest.Send(t, c, string(hello[:len(hello)*part/100]))
}

// clientHello returns what a client begins with on c.
func clientHello(c net.Conn, cfg *tls.Config) []byte {
	h := &holding{Conn: c, on: true}
	_ = c.SetReadDeadline(time.Now())
	_ = tls.Client(h, cfg).Handshake()
	_ = c.SetReadDeadline(time.Now().Add(servertest.Timeout))
	return h.held.Bytes()
}

func TestMain(m *testing.M) { servertest.Main(m) }
