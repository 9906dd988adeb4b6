package secure_test

import (
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/examples/echo/echo"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
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
