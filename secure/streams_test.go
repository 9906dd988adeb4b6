package secure_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/streamtest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
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

// A connection with a part of a record is not idle, so it makes no room.
func TestAPartOfARecordIsNotIdle(t *testing.T) {
	idle := make(chan bool, 1)
	server, client := identities(t)
	s := serve(t, &service.TCP{Filters: []listener.Filter{secure.Server(server, nil)}, Handler: func(c *listener.Conn) act.Action {
		served := false
		return act.Func(func(t *act.Task) act.Directive {
			in, err := c.Peek(1)
			c.Discard(len(in))
			if len(in) > 0 {
				_, _ = c.Write(in[:1])
				served = true
			} else if _, waits := err.(act.Blocked); waits && served {
				_, is := c.IdleSince()
				select {
				case idle <- is:
				default:
				}
			}
			return listener.Next(t, err)
		})
	}})
	c, h := s.hold(client)
	require.True(t, servertest.Receive(t, idle))
	servertest.Send(t, c, "hello")
	whole := bytes.Clone(h.held.Bytes())
	h.held.Truncate(7)
	h.send(t)
	require.False(t, servertest.Receive(t, idle))
	_, err := h.Conn.Write(whole[7:])
	require.NoError(t, err)
	servertest.Expect(t, c, "h")
	require.True(t, servertest.Receive(t, idle))
	_ = h.Close()
	s.drain()
}
