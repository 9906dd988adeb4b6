package secure_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
	"github.com/daimon-go/daimon/service"
)

func TestEchoOverTLS(t *testing.T) {
	server, client := identities(t)
	for _, h := range []*secure.Handshakes{nil, {OnReactor: true}} {
		for _, v := range versions {
			for _, size := range []int{1, 20_000, 3 << 20} {
				t.Run(fmt.Sprintf("%s/%v/%d", tls.VersionName(v), h, size), func(t *testing.T) {
					s := serve(t, &service.TCP{Handler: echo, Filters: []listener.Filter{secure.Server(server, h)}})
					c := s.dial(version(client, v))
					sent := noise(size)
					done := make(chan error, 1)
					go func() {
						_, err := c.Write(sent)
						if err == nil {
							err = c.CloseWrite()
						}
						done <- err
					}()
					got, err := io.ReadAll(c)
					require.NoError(t, err)
					require.NoError(t, <-done)
					require.Equal(t, sent, got)
					_ = c.Close()
					s.drain()
				})
			}
		}
	}
}
