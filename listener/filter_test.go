package listener_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/testing/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/shutdown"
)

// prepared is a filter whose action notes what is done to it.
type prepared struct{ script }

func TestCloseAndAbandonOfAConnectEndItsFilters(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(l *servertest.Stepped, c *listener.Connect)
		closed int
	}{
		"Close":   {end: func(_ *servertest.Stepped, c *listener.Connect) { _ = c.Close() }, closed: 1},
		"Abandon": {end: func(_ *servertest.Stepped, c *listener.Connect) { _ = c.Abandon().(io.Closer).Close() }, closed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := servertest.New(t, act.Config{})
			door, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer door.Close()
			p := &prepared{script{says: []act.Directive{act.Wait}}}
			dial := &listener.Connect{Address: door.Addr().String(), Filters: []listener.Filter{func(*listener.Conn) act.Action { return p }}}
			o := spawn(l.S, dial).begun(l)
			peer, err := door.Accept()
			require.NoError(t, err)
			defer peer.Close()
			l.For(0)
			require.Nil(t, dial.Conn(), "it is not ready")
			l.Turn(func(task *act.Task) { dial.Stop(task, shutdown.Policy{}) })
			require.Len(t, p.told, 1)
			test.end(l, dial)
			require.Equal(t, test.closed, p.closed)
			_, err = io.ReadAll(peer)
			require.Error(t, err, "reset")
			l.S.Shutdown(servertest.Drain)
			require.Equal(t, act.Failed, o.over(l))
			require.ErrorIs(t, o.err, net.ErrClosed)
		})
	}
}
