package proxyproto

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Config says whose headers are believed.
//
// A connection from a trusted sender must begin with a header; one from elsewhere must not. Whether there is one is not
// guessed (section 2 of the protocol): a client that may reach the server directly could otherwise take any address. So
// the filter reads nothing from other senders, as with HAProxy's expect-proxy. If they send a header, the protocol
// above refuses it like any other bytes that are not its own.
type Config struct {
	// Trusted has the networks of the proxies. A network of IPv4 may also be written as IPv4-mapped, such as ::ffff:10.0.0.0/104.
	// Only proxies that send a header themselves may connect from there: one that only passes on bytes lets its clients choose
	// their addresses.
	Trusted []netip.Prefix
	// Unix makes clients of a Unix socket trusted. The permissions of the socket's file decide who they are.
	Unix bool
	// RefuseOthers refuses connections from elsewhere. By default they are served, with their own addresses.
	RefuseOthers bool
}

// errStranger is the error of a connection from elsewhere.
var errStranger = errors.New("proxyproto: the sender is not trusted")

// Server returns a filter for accepted connections, which reads the header. It reads nothing beyond it. A header has at most
// 4096 bytes, which Limits.Read must allow.
//
// A sender is refused if its header is malformed, too long, has a wrong checksum or does not come within FilterTimeout. With
// RefuseOthers one that is not trusted is refused too. The connection is aborted, which is logged at debug level, and the error
// is a [listener.PeerError]. While nothing has come the connection is idle, so a service at MaxConns may evict it: see
// EvictAfter of service.Listener.
//
// Server panics if nobody is trusted.
func Server(config Config) listener.Filter {
	config.Trusted = slices.Clone(config.Trusted)
	for i, p := range config.Trusted {
		config.Trusted[i] = plain(p)
	}
	if config.nobody() || slices.ContainsFunc(config.Trusted, func(p netip.Prefix) bool { return !p.IsValid() }) {
		panic("proxyproto: a Config that trusts nobody, or an invalid network")
	}
	return func(c *listener.Conn) act.Action {
		switch {
		case config.trusts(c.RemoteAddr()):
			return &reading{c}
		case config.RefuseOthers:
			return act.Func(func(t *act.Task) act.Directive { return refuse(t, c, errStranger) })
		}
		return nil
	}
}

func (c *Config) trusts(sender net.Addr) bool {
	if _, unix := sender.(*net.UnixAddr); unix {
		return c.Unix
	}
	ip := facts.AddrPort(sender).Addr().WithZone("")
	return slices.ContainsFunc(c.Trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// plain returns a network of IPv4-mapped addresses as one of IPv4: senders have such addresses. One that has others as well
// becomes invalid.
func plain(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// refuse aborts the connection: a sender that waits for an answer notices that at once.
func refuse(t *act.Task, c *listener.Conn, err error) act.Directive {
	c.Abort()
	return t.Fail(&listener.PeerError{Err: err})
}

// reading is the action of a connection until its header is read. An incomplete header stays unread.
type reading struct{ conn *listener.Conn }

func (x *reading) Act(t *act.Task) act.Directive {
	for need := 1; ; {
		in, err := x.conn.Peek(need)
		h, n, bad := Parse(in)
		switch {
		case bad == nil:
			x.conn.Discard(n)
			return x.accept(t, h)
		case bad != io.ErrUnexpectedEOF:
			return refuse(t, x.conn, bad)
		case err == nil:
			need = n
		case err == io.EOF:
			return refuse(t, x.conn, fmt.Errorf("proxyproto: the connection has ended before its PROXY header: %w", bad))
		default:
			return listener.Next(t, err)
		}
	}
}

func (x *reading) accept(t *act.Task, h Header) act.Directive {
	if h.Source == nil {
		return act.Done
	}
	if err := x.conn.Wrap(func(below monitor.Stream) monitor.Stream { return &stream{below, h} }); err != nil {
		return t.Fail(err)
	}
	return act.Done
}

// Silent reports whether nothing has come: then a shutdown ends the wait, see [listener.Filter].
func (x *reading) Silent() bool { return x.conn.Buffered() == 0 }

// IdleSince lets a service at MaxConns close the connection of a sender that is silent.
func (x *reading) IdleSince() (since time.Duration, idle bool) { return x.conn.IdleSince() }

func (x *reading) Describe(d *act.Description) { d.Of(x.conn) }

func (x *reading) String() string { return "PROXY header" }
