package secure_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
)

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
