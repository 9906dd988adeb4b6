package service_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
)

// greeting says hello and then stays until the peer closes.
func greeting(c *listener.Conn) act.Action { return act.Seq(answers("hello")(c), echo(c)) }

// The bound is for all schedulers together. A client beyond it waits in the backlog, and is accepted when
// another leaves, on whichever scheduler that was.
func TestMaxConnsIsTheTotalOfAllSchedulers(t *testing.T) {
	const clients, most = 30, 3
	tcp := &service.TCP{Address: loopback, Handler: greeting, MaxConns: most}
	unix := &service.Unix{Path: filepath.Join(servertest.ShortDir(t), "s"), Handler: greeting, MaxConns: most}
	for _, kind := range []kind{{"tcp", tcp}, {"unix", unix}} {
		t.Run(kind.name, func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				w := begin(t, cfg, kind.Setup)
				served := make(chan net.Conn, clients)
				for range clients {
					c := servertest.Dial(t, kind.Addr())
					go func() {
						if _, err := io.ReadFull(c, make([]byte, 5)); err == nil {
							served <- c
						}
					}()
				}
				for range clients {
					select {
					case c := <-served:
						require.LessOrEqual(t, kind.Open(), most)
						require.Less(t, len(served), most)
						require.NoError(t, c.Close())
					case <-time.After(servertest.Timeout):
						require.FailNow(t, "the next one does not come in")
					}
				}
				require.NoError(t, w.order(servertest.Drain))
			})
		})
	}
}
