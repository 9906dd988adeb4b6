package nethttp

import (
	"crypto/tls"
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// addresses are the addresses of a connection, and what its TLS has negotiated.
type addresses struct {
	local, peer net.Addr
	remote      string               // peer, as a text
	tls         *tls.ConnectionState // nil if there is no TLS; all requests share it, as in net/http
}

func addressesOf(c *listener.Conn, peer net.Addr) addresses {
	if peer == nil { // it has gone
		peer = &net.UnixAddr{Name: "unknown", Net: "unknown"}
	}
	if u, is := peer.(*net.UnixAddr); is && u.Name == "" { // as package net calls an address without a name
		peer = &net.UnixAddr{Name: "@", Net: u.Net}
	}
	a := addresses{local: c.LocalAddr(), peer: peer, remote: peer.String()}
	if state, ok := secure.State(c); ok {
		a.tls = &state
	}
	return a
}

// peers has the addresses of connections that have had requests lately, since to ask for them takes two system calls. It is not
// a part of a connection, so that one at rest takes no memory for them.
var peers = act.NewLocal(func(*act.Scheduler) map[*listener.Conn]addresses { return map[*listener.Conn]addresses{} })

// mostPeers bounds how many are kept.
const mostPeers = 1024

// known returns the addresses of the connection that r came on.
func known(r *httpd.Request) addresses {
	conn, all := r.Conn(), peers.Get(r.Scheduler())
	a, ok := all[conn]
	if !ok {
		a = addressesOf(conn, r.RemoteAddr())
		if len(all) == mostPeers {
			clear(all)
		}
		all[conn] = a
	}
	return a
}
