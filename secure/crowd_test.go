package secure_test

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/shutdown"
)

// ignoreCut is for the end of a server with connections that do not end.
func ignoreCut(err error) error {
	if cut := (*shutdown.Cut)(nil); errors.As(err, &cut) {
		return nil
	}
	return err
}

// dropped returns how many handshakes were given up for newer ones.
func (v *serving) dropped() (n uint64) {
	v.On(0, func(s *act.Scheduler) { n = servertest.CountsOf(s)["handshakes_dropped_total"] })
	return n
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
	require.EqualValues(t, 1, s.dropped())
	close(goOn)
	require.NoError(t, servertest.Receive(t, first))
	halves(t, c)
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
	require.Zero(t, s.dropped())
	s.Running.Group.Shutdown(servertest.Cut)
	require.NoError(t, ignoreCut(s.End()))
}
