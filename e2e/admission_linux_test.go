package e2e

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/internal/exectest"
)

// Connections come from two addresses of the loopback.
func TestLimitsOfSources(t *testing.T) {
	outside(t)
	t.Parallel()
	from := func(server *exectest.Program, address byte) (net.Conn, error) {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, address)}, Timeout: patience}).Dial("tcp", server.Addr)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = c.Close() })
		return c, ping(c.(client), "hello")
	}
	for _, flag := range []string{"-max-per-source", "-rate-per-source"} {
		t.Run(flag, func(t *testing.T) {
			server := serve(t, "echo", append([]string{"-reactors", "2", flag, "3"}, inspectable...)...)
			served := 0
			for {
				if _, err := from(server, 77); err != nil {
					break
				}
				served++
				require.Less(t, served, 1000)
			}
			_, err := from(server, 78)
			require.NoError(t, err, "another source")
			counted := serviceAt(t, viewerOf(t, server).timely(t), server.Addr)
			require.EqualValues(t, 1, counted.Refused)
			if flag == "-max-per-source" {
				require.Equal(t, 3, served)
				require.EqualValues(t, 1, counted.TooMany)
			} else {
				require.GreaterOrEqual(t, served, 3)
				require.EqualValues(t, 1, counted.TooFast)
			}
		})
	}
}
