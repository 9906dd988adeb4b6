package filtertest

import (
	"errors"
	"net"
	"net/netip"
	"strings"

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
		words := strings.Fields(string(header)) // PROXY TCP4 source destination port port
		if len(words) != 6 || words[0] != "PROXY" {
			return t.Fail(ErrHeader)
		}
		addr, err := netip.ParseAddrPort(net.JoinHostPort(words[2], words[4]))
		if err != nil {
			return t.Fail(ErrHeader)
		}
		if err := c.Wrap(func(s monitor.Stream) monitor.Stream { return &relabelled{s, net.TCPAddrFromAddrPort(addr)} }); err != nil {
			return t.Fail(err)
		}
		return act.Done
	})
}

// SayProxy is the filter of the other side: it sends a header that names addr.
func SayProxy(addr string) listener.Filter {
	at := netip.MustParseAddrPort(addr)
	return func(c *listener.Conn) act.Action {
		return act.Func(func(t *act.Task) act.Directive {
			header := "PROXY TCP4 " + at.Addr().String() + " 10.0.0.1 " + strings.TrimPrefix(addr, at.Addr().String()+":") + " 80\r\n"
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
