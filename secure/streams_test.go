package secure_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/daimon-go/daimon/internal/testing/streamtest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// TestStreams plays the suite of Streams with clients of crypto/tls.
func TestStreams(t *testing.T) {
	server, client := identities(t)
	filters := []listener.Filter{secure.Server(server, nil)}
	for _, v := range versions {
		t.Run(tls.VersionName(v), func(t *testing.T) {
			streamtest.Run(t, streamtest.Sockets("tcp", filters, func(under net.Conn) net.Conn {
				c := tls.Client(under, version(client, v))
				if err := c.Handshake(); err != nil {
					panic(err)
				}
				return c
			}))
		})
	}
}
