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

// echoes answers what comes.
func echoes(c *listener.Conn) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		in, err := c.Peek(1)
		if err != nil {
			return listener.Next(t, err)
		}
		n, err := c.Write(in)
		c.Discard(n)
		return listener.Next(t, err)
	})
}

// header is a filter that reads a PROXY header.
var header = proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})

// A header in front, and then other bytes, on the accepting and on the dialling side.
func TestFiltersOfBothSides(t *testing.T) {
	l := servertest.New(t, act.Config{})
	a := door(l, nil)
	var server *listener.Conn
	s := spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		d := a.Act(t)
		if d == act.Done {
			server = a.Conn()
			t.Scheduler().Spawn(act.Seq(listener.Filtered(server, 0, header, filtertest.Mask(7)), echoes(server)))
		}
		return d
	}))
	named := proxyproto.Header{Version: 2, Source: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}, Destination: a.From.Addr()}
	dial := &listener.Connect{Address: a.From.Addr().String(), Filters: []listener.Filter{proxyproto.Client(named), filtertest.Mask(200)}}
	require.Equal(t, act.Done, spawn(l.S, act.Func(func(t *act.Task) act.Directive {
		d := dial.Act(t)
		if d == act.Done {
			c := dial.Conn()
			_, _ = c.WriteString("hello")
			t.Scheduler().Spawn(act.Func(func(t *act.Task) act.Directive {
				in, err := c.Peek(5)
				if err != nil {
					return listener.Next(t, err)
				}
				if string(in) != "hello" {
					return t.Fail(errors.New(string(in)))
				}
				return act.Seq(act.Func(func(*act.Task) act.Directive { _ = c.Close(); return act.Done })).Act(t)
			}))
		}
		return d
	})).over(l))
	require.Equal(t, act.Done, s.over(l))
	l.Until("the server's peer is known by its new name", func() bool {
		at := server.RemoteAddr()
		return at != nil && at.String() == "192.0.2.7:4711"
	})
	l.Until("the end", func() bool {
		n := 0
		l.Turn(func(*act.Task) { n = server.Buffered() })
		return n == 0 && l.Logs.Len() == 0
	})
	server.Abort()
	require.NoError(t, a.From.Close())
	require.Empty(t, l.Logs.FilterMessage("a task failed").All())
}

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
