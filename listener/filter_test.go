package listener_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/filtertest"
	"github.com/daimon-go/daimon/internal/servertest"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/shutdown"
)

// header is a filter that reads a PROXY header.
var header = proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})

var errPeer = errors.New("any PeerError")

func TestFiltersAreBoundedAndRefuse(t *testing.T) {
	for name, row := range map[string]struct {
		says    string
		filter  listener.Filter
		wantErr error
	}{
		"a refusal":   {says: "GET / HTTP/1.1\r\n", filter: header, wantErr: errPeer},
		"too long":    {says: "PROXY UNKNOWN" + string(make([]byte, 200)), filter: header, wantErr: errPeer},
		"time":        {filter: header, wantErr: os.ErrDeadlineExceeded},
		"closed":      {filter: func(c *listener.Conn) act.Action { _ = c.Close(); return nil }, wantErr: net.ErrClosed},
		"nothing":     {filter: func(c *listener.Conn) act.Action { return nil }},
		"no action":   {},
		"a wrong key": {says: "\x00", filter: filtertest.Mask(1), wantErr: filtertest.ErrKey},
	} {
		t.Run(name, func(t *testing.T) {
			l, clock := virtual(t)
			c, peer := l.Conn("tcp", listener.Limits{Linger: time.Millisecond})
			servertest.Send(t, peer, row.says)
			var filters []listener.Filter
			if row.filter != nil {
				filters = append(filters, row.filter)
			}
			o := spawn(l.S, listener.Filtered(c, time.Second, filters...))
			if row.wantErr == os.ErrDeadlineExceeded {
				o.begun(l)
				pass(l, clock, time.Second)
			}
			d := o.over(l)
			if fault := (*listener.PeerError)(nil); row.wantErr == nil {
				require.Equal(t, act.Done, d)
			} else if row.wantErr == errPeer {
				require.Equal(t, act.Failed, d)
				require.ErrorAs(t, o.err, &fault)
			} else {
				require.Equal(t, act.Failed, d)
				require.ErrorIs(t, o.err, row.wantErr)
			}
			c.Abort()
		})
	}
}

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
			l.For(5 * time.Millisecond)
			require.Nil(t, dial.Conn(), "it is not ready")
			l.Turn(func(task *act.Task) { dial.Stop(task, shutdown.Now{}) })
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
