package secure_test

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// A server that is cut off leaves no goroutine and no descriptor, whatever state its handshakes are in.
func TestADropInEachStateOfAHandshake(t *testing.T) {
	base, client := identities(t)
	for _, state := range []string{"nothing has come", "a part of the first message", "waiting for the client", "computing",
		"waiting for a slot", "over", "refused"} {
		for _, x := range []act.Executor{nil, simulated{}} {
			if x != nil && (state == "computing" || state == "waiting for a slot") {
				continue // it would hold up the scheduler
			}
			name := map[bool]string{true: " in turns", false: " on goroutines"}[x != nil]
			t.Run(state+name, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				computing := make(chan struct{}, 100)
				server := &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
					switch state {
					case "computing":
						computing <- struct{}{}
						<-hello.Context().Done()
					case "waiting for a slot":
						computing <- struct{}{}
						time.Sleep(2 * time.Millisecond) // less than a step may have its slot
					case "refused":
						return nil, errors.New("no certificate for you")
					}
					return &base.Certificates[0], nil
				}}
				s := serveWith(t, act.Config{Schedulers: 1, Executor: x}, &service.Listener{Handler: echo.Echo, FilterTimeout: time.Minute,
					Filters: []listener.Filter{secure.Server(server, &secure.Handshakes{Slots: 1})}})
				switch state {
				case "nothing has come":
					s.stalls(10, 0, client)
				case "a part of the first message":
					s.stalls(10, 50, client)
				case "over":
					c := s.dial(client)
					servertest.Echo(t, c, "x")
				default:
					for _, c := range s.stalls(10, 100, client) {
						if state == "waiting for the client" || state == "refused" {
							_, err := c.Read(make([]byte, 1)) // the server's answer
							require.NoError(t, err)
						}
					}
				}
				switch state {
				case "computing":
					for range 10 {
						servertest.Receive(t, computing)
					}
				case "waiting for a slot":
					servertest.Receive(t, computing)
				}
				require.Eventually(t, func() bool { return s.Conns() > 0 }, servertest.Timeout, time.Millisecond)
				s.Running.Group.Shutdown(servertest.Cut)
				if err := s.End(); state != "refused" { // that one may have ended
					var cut *shutdown.Cut
					require.ErrorAs(t, err, &cut)
				}
				_ = s.Running.Group.Close()
				goleak.VerifyNone(t, before)
			})
		}
	}
}

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
