package proxyproto

import (
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Of returns the header that c began with, as a filter of [Server] has read it. It returns false if there was none, or one
// without addresses, and after Close. The header must not be changed. Call Of on the thread of c's scheduler.
func Of(c *listener.Conn) (Header, bool) {
	if s, ok := find(c); ok {
		return s.header, true
	}
	return Header{}, false
}

// ProxyAddr returns the address of the sender: the proxy's if c began with a header, otherwise the client's. (RemoteAddr of c
// returns the client's in both cases.) Call it on the thread of c's scheduler.
func ProxyAddr(c *listener.Conn) net.Addr {
	if s, ok := find(c); ok {
		return s.Stream.PeerAddr()
	}
	return c.RemoteAddr()
}

// find returns the stream under c, which may lie below others.
func find(c *listener.Conn) (*stream, bool) {
	for s, _ := listener.As[monitor.Stream](c); s != nil; {
		switch over := s.(type) {
		case *stream:
			return over, true
		case interface{ Unwrap() monitor.Stream }:
			s = over.Unwrap()
		case interface{ Below() monitor.Stream }: // TLS
			s = over.Below()
		default:
			return nil, false
		}
	}
	return nil, false
}

// stream is the Stream of a connection that began with a header. It has other addresses than the one below.
type stream struct {
	monitor.Stream
	header Header
}

// PeerAddr is the address of the client.
func (s *stream) PeerAddr() net.Addr { return s.header.Source }

// LocalAddr is the address that the client has connected to.
func (s *stream) LocalAddr() net.Addr { return s.header.Destination }

// Unwrap returns the Stream below.
func (s *stream) Unwrap() monitor.Stream { return s.Stream }

// Describe describes the Stream below, with the client in place of the proxy.
func (s *stream) Describe(d *act.Description) {
	below, ok := monitor.As[act.Describer](s.Stream)
	if !ok {
		return
	}
	said := d.Internals()
	first := said.Waits.Len()
	below.Describe(d)
	said.Waits.Forwarded(first, s.header.Source)
	if said.Peer = (facts.Address{TCP: facts.AddrPort(s.header.Source)}); !said.Peer.TCP.IsValid() {
		said.Peer.Name = s.header.Source.String()
	}
}
