package filtertest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// ErrHeader is the refusal of a connection that does not begin with a PROXY header.
var ErrHeader = errors.New("filtertest: no PROXY header")

// maxHeader is the longest header of version 1, with its end (the PROXY protocol, section 2.1).
const maxHeader = 107

// Proxy is a filter that reads a PROXY header of version 1, and makes the address in it the one of the peer.
func Proxy(c *listener.Conn) act.Action {
	line := &listener.Line{Conn: c, Max: maxHeader}
	return act.Func(func(t *act.Task) act.Directive {
		header, err := line.Read()
		if err == listener.ErrTooLong {
			err = ErrHeader
		}
		if err != nil {
			if d := listener.Next(t, err); d != act.Done {
				return d
			}
			return t.Fail(ErrHeader) // the end came first
		}
		var source, destination string
		var from, to int
		_, err = fmt.Sscanf(string(header), "PROXY TCP4 %s %s %d %d", &source, &destination, &from, &to)
		addr := net.TCPAddr{IP: net.ParseIP(source), Port: from}
		if err != nil || addr.IP == nil {
			return t.Fail(ErrHeader)
		}
		if err := c.Wrap(func(s monitor.Stream) monitor.Stream { return &relabelled{s, &addr} }); err != nil {
			return t.Fail(err)
		}
		return act.Done
	})
}

// SayProxy is the filter of the other side: it sends a header that names addr.
func SayProxy(addr string) listener.Filter {
	at := netip.MustParseAddrPort(addr)
	header := fmt.Sprintf("PROXY TCP4 %v 10.0.0.1 %d 80\r\n", at.Addr(), at.Port())
	return func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			if n, err := c.WriteString(header); n < len(header) {
				return t.Fail(err) // a fresh connection has room
			}
			return act.Done
		})
	}
}

// relabelled is a Stream with another address of the peer.
type relabelled struct {
	monitor.Stream
	peer net.Addr
}

func (r *relabelled) PeerAddr() net.Addr     { return r.peer }
func (r *relabelled) Unwrap() monitor.Stream { return r.Stream }
