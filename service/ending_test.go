package service_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/internal/tier"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/service"
	"github.com/daimon-go/daimon/shutdown"
)

// courteous is an echo that ends at an order, however it hears of it.
func courteous(c *listener.Conn) act.Action {
	inner := echo(c)
	return act.Func(func(t *act.Task) act.Directive {
		if t.Order() != nil {
			return act.Done
		}
		return inner.Act(t)
	})
}

// repeats sends a line and wants it back.
func repeats(t *testing.T, c net.Conn, line string) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	_, err := io.WriteString(c, line+"\n")
	require.NoError(t, err)
	got, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, line+"\n", got)
}

// ended wants the server to end the connection, by a reset or in order.
func ended(t *testing.T, c net.Conn, reset bool) {
	t.Helper()
	require.NoError(t, c.SetDeadline(time.Now().Add(servertest.Timeout)))
	_, err := c.Read(make([]byte, 1))
	if timeout := net.Error(nil); errors.As(err, &timeout) {
		require.False(t, timeout.Timeout(), "it goes on")
	}
	if reset && c.RemoteAddr().Network() == "tcp" { // a Unix socket that is aborted ends as any other
		require.NotErrorIs(t, err, io.EOF)
	} else {
		require.ErrorIs(t, err, io.EOF)
	}
	require.NoError(t, c.Close()) // otherwise the server waits for that
}

// ending returns a service of each kind.
func ending(t *testing.T, at service.Ending) []kind {
	all := both(t, courteous)
	all[0].socketed.(*service.TCP).AtEnd, all[1].socketed.(*service.Unix).AtEnd = at, at
	return all
}

// Under an order the connections of each service end as it says. A service that is told is there to show that the order is in
// force, as no other is told.
func TestWhatBecomesOfConnectionsAtTheEnd(t *testing.T) {
	long := shutdown.Now{Terms: shutdown.Policy{Time: servertest.Timeout, Drop: true}}
	for i, kind := range both(t, courteous) {
		t.Run(kind.name, func(t *testing.T) {
			servertest.UnderEach(t, func(t *testing.T, cfg act.Config) {
				for cfg.Schedulers = range tier.Choose(2, 3, 3) {
					if cfg.Schedulers == 0 {
						continue
					}
					told, finish := ending(t, service.FinishRequest)[i], ending(t, service.Finish)[i]
					discard, last := ending(t, service.Discard)[i], ending(t, service.LastOfAll)[i]
					w := begin(t, cfg, told.Setup, finish.Setup, discard.Setup, last.Setup)
					clients := map[service.Ending]net.Conn{}
					for at, k := range []socketed{told, finish, discard, last} {
						clients[service.Ending(at)] = servertest.Dial(t, k.Addr())
						repeats(t, clients[service.Ending(at)], "before")
					}
					w.Group.Shutdown(long)
					ended(t, clients[service.FinishRequest], false)
					ended(t, clients[service.Discard], true)
					repeats(t, clients[service.Finish], "it knows nothing of the order")
					if cfg.Schedulers == 1 {
						repeats(t, clients[service.LastOfAll], "it is still there")
						another := servertest.Dial(t, last.Addr())
						repeats(t, another, "and accepts")
						require.NoError(t, clients[service.Finish].Close())
						ended(t, another, false)
					} else { // the last ones of the other scheduler may have ended already
						require.NoError(t, clients[service.Finish].Close())
					}
					ended(t, clients[service.LastOfAll], false)
					require.NoError(t, w.End())
					require.NoError(t, w.Group.Close())
				}
			})
		})
	}
}
