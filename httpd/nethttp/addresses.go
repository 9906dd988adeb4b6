package nethttp

import (
	"net"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/listener"
)

// addresses are those of a connection.
type addresses struct {
	local  net.Addr
	remote string
}

// known has the addresses of connections that have had requests lately, since to ask for them takes two system calls. It is
// no part of a connection, so that one at rest takes no memory for them.
type known map[*listener.Conn]addresses

// mostKnown bounds how many are kept.
const mostKnown = 1024

var peers = act.NewLocal(func(*act.Scheduler) known { return known{} })

// of returns the addresses of the connection that r came on.
func (k known) of(r *httpd.Request) addresses {
	conn := r.Conn()
	a, ok := k[conn]
	if !ok {
		a = addresses{conn.LocalAddr(), r.RemoteAddr().String()}
		if len(k) == mostKnown {
			clear(k)
		}
		k[conn] = a
	}
	return a
}
