package secure_test

import (
	"crypto/tls"
	"errors"
	"io"
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
		servertest.Echo(t, c, "hello")
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

// Failures of the server's own making are seen at level Info: a line a second, also while they go on. A client that has sent
// nothing is none.
func TestFailedHandshakesAreALineInTheLog(t *testing.T) {
	_, client := identities(t)
	v := overTLS(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return nil, errors.New("no certificate today")
	}})
	s := serve(t, v)
	for range 5 {
		_ = servertest.Dial(t, s.Addr()).Close()
	}
	var lines []observer.LoggedEntry
	failed, logged := int64(0), int64(0)
	require.Eventually(t, func() bool {
		require.Error(t, s.handshake(client))
		failed++
		lines = s.Logs.FilterMessage("TLS handshakes have failed").All()
		return len(lines) == 2
	}, servertest.Timeout, 5*time.Millisecond)
	for _, line := range lines {
		require.Equal(t, "no certificate today", line.ContextMap()["the last"])
		logged += line.ContextMap()["in a second"].(int64)
	}
	require.LessOrEqual(t, logged, failed)
	require.GreaterOrEqual(t, logged, failed-1, "all but the one that came behind the second line")
	s.drain()
}

// Those that are too many are given up one for one, also if they come at the same time.
func TestManyHandshakesThatComeTogetherAreGivenUpOneForOne(t *testing.T) {
	server, _ := identities(t)
	h := &secure.Handshakes{Waiting: 10}
	v := overTLS(server)
	v.Filters[0], v.FilterTimeout = secure.Server(server, h), time.Minute
	v.Address = "127.0.0.1:0"
	s := &serving{servertest.Start(t, act.Config{Schedulers: 1}, v.Setup), v}
	held, release := make(chan struct{}), make(chan struct{})
	go s.On(0, func(*act.Scheduler) {
		close(held)
		<-release
	})
	servertest.Receive(t, held)
	for range 25 {
		servertest.Dial(t, s.Addr())
	}
	close(release)
	require.Eventually(t, func() bool { return h.Dropped() == 15 && s.Open() == 10 }, servertest.Timeout, time.Millisecond)
	s.drain() // the others are silent
}

// At MaxConns a handshake that is computed makes no room.
func TestAHandshakeThatIsComputedMakesNoRoom(t *testing.T) {
	base, client := identities(t)
	computing, goOn := make(chan struct{}, 1), make(chan struct{})
	v := overTLS(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		computing <- struct{}{}
		<-goOn
		return &base.Certificates[0], nil
	}})
	v.MaxConns, v.ReclaimAfter = 1, time.Millisecond
	s := serve(t, v)
	first := tls.Client(servertest.Dial(t, s.Addr()), client)
	shaken := make(chan error, 1)
	go func() { shaken <- first.Handshake() }()
	servertest.Receive(t, computing)
	_ = servertest.Dial(t, s.Addr()).SetDeadline(time.Now())
	time.Sleep(300 * time.Millisecond) // a service looks for room every 100 ms
	close(goOn)
	require.NoError(t, servertest.Receive(t, shaken))
	_ = first.Close()
	s.Group.Shutdown(servertest.Cut)
	require.NoError(t, ignoreCut(s.End()))
}

// A handshake that takes too long ends at once, and does not wait for the peer to close.
func TestAHandshakeThatTakesTooLongDoesNotLinger(t *testing.T) {
	server, client := identities(t)
	for _, part := range []int{50, 100} {
		v := overTLS(server)
		v.FilterTimeout, v.Limits.Linger = 20*time.Millisecond, time.Hour
		s := serve(t, v)
		c := s.stalls(1, part, client)[0]
		_, _ = io.Copy(io.Discard, c) // until it has ended
		require.Eventually(t, func() bool { return s.Open() == 0 }, servertest.Timeout, time.Millisecond)
		_ = c.Close()
		s.drain()
	}
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
