package secure_test

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest/observer"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/shutdown"
)

// Clients that connect and are silent take the places of a service for half a second only, if others wait.
func TestSilentPeersMakeRoomForOthers(t *testing.T) {
	server, client := identities(t)
	v := overTLS(server)
	v.MaxConns, v.FilterTimeout = 5, servertest.Timeout
	s := serve(t, v)
	for range 5 {
		servertest.Dial(t, s.Addr())
	}
	require.Eventually(t, func() bool { return s.Open() == 5 }, servertest.Timeout, time.Millisecond)
	for range 5 {
		c := s.dial(client)
		servertest.Send(t, c, "hello")
		servertest.Expect(t, c, "hello")
		halves(t, c)
	}
	s.Group.Shutdown(servertest.Cut)
	require.NoError(t, ignoreCut(s.End()))
}

// ignoreCut is for the end of a server with connections that do not end.
func ignoreCut(err error) error {
	if cut := (*shutdown.Cut)(nil); errors.As(err, &cut) {
		return nil
	}
	return err
}

// A server that drains does not wait for clients that have sent nothing.
func TestADrainDoesNotWaitForSilentPeers(t *testing.T) {
	server, _ := identities(t)
	v := overTLS(server)
	v.FilterTimeout, v.Limits.Linger = time.Hour, time.Hour
	s := serve(t, v)
	silent := servertest.Dial(t, s.Addr())
	require.Eventually(t, func() bool { return s.Open() == 1 }, servertest.Timeout, time.Millisecond)
	s.drain()
	servertest.ExpectEOF(t, silent)
}

// What was computed is not given up, and neither is a handshake that waits for its turn to be computed: under more
// clients than may be under way, handshakes succeed one after the other.
func TestHandshakesThatComputeAreNotGivenUp(t *testing.T) {
	server, client := identities(t)
	computing, goOn := make(chan struct{}), make(chan struct{})
	server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		computing <- struct{}{}
		<-goOn
		return &server.Certificates[0], nil
	}
	config := &tls.Config{GetCertificate: server.GetCertificate}
	h := &secure.Handshakes{Waiting: 1, Slots: 1}
	v := overTLS(server)
	v.Filters[0] = secure.Server(config, h)
	s := serve(t, v)
	first := make(chan error, 1)
	c := tls.Client(servertest.Dial(t, s.Addr()), client)
	go func() { first <- c.Handshake() }()
	servertest.Receive(t, computing)
	second := servertest.Dial(t, s.Addr())
	servertest.ExpectEOF(t, second) // the newest goes, since all others compute
	require.EqualValues(t, 1, h.Dropped())
	close(goOn)
	require.NoError(t, servertest.Receive(t, first))
	halves(t, c)
	s.drain()
}

// Failures of the server's own making are seen at level Info: a line a second.
func TestFailedHandshakesAreALineInTheLog(t *testing.T) {
	_, client := identities(t)
	v := overTLS(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("no certificate today")
	}})
	s := serve(t, v)
	for range 3 {
		require.Error(t, s.handshake(client))
	}
	var lines []observer.LoggedEntry
	require.Eventually(t, func() bool {
		lines = s.Logs.FilterMessage("TLS handshakes have failed").All()
		return len(lines) > 0
	}, servertest.Timeout, 5*time.Millisecond)
	require.Equal(t, "no certificate today", lines[0].ContextMap()["the last"])
	s.drain()
}

// Handshakes of clients are not counted: how many there are is the program's own choice, and an attack on its server must not
// end them.
func TestHandshakesOfClientsAreNotGivenUp(t *testing.T) {
	server, client := identities(t)
	h := &secure.Handshakes{Waiting: 1}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	v := overTLS(server)
	v.Filters[0] = secure.Server(server, h)
	s := serve(t, v)
	s.On(0, func(on *act.Scheduler) {
		for range 3 {
			on.Spawn(&listener.Connect{Address: silent.Addr().String(), Filters: []listener.Filter{secure.Client(client, h)}})
		}
	})
	for range 3 {
		c, err := silent.Accept()
		require.NoError(t, err)
		defer func() { _ = c.Close() }()
	}
	c := s.dial(client)
	halves(t, c)
	require.Zero(t, h.Dropped())
	s.Group.Shutdown(servertest.Cut)
	require.NoError(t, ignoreCut(s.End()))
}
