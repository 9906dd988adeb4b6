// Package proxy forwards connections: it dials, and copies bytes both ways with backpressure.
package proxy

import (
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
)

// patience bounds a connect.
const patience = 10 * time.Second

// To returns a handler that forwards each connection to address. It reads from a side only as fast as the other side takes the
// bytes: in each direction at most Limits.Read and Limits.High bytes are under way. The end of one direction is passed on
// while the other goes on; a reset on one side resets the other. If the connect fails, the connection is closed and the task
// fails. After a shutdown request it goes on until both sides have closed. The filters prepare the dialled connection, in this
// order; each is made for the connection that was accepted.
func To(address string, filters ...func(near *listener.Conn) listener.Filter) func(*listener.Conn) act.Action {
	return func(near *listener.Conn) act.Action {
		dial := &listener.Connect{Address: address}
		for _, filter := range filters {
			dial.Filters = append(dial.Filters, filter(near))
		}
		return act.Seq(listener.Within(patience, dial), &passage{near: near, dial: dial})
	}
}

// Header returns what makes the filters that tell the other side, in a PROXY header of this version, where each connection
// comes from. If the connection began with a header, the addresses are the ones in it, and its values are passed on.
func Header(version int) func(near *listener.Conn) listener.Filter {
	return func(near *listener.Conn) listener.Filter {
		h, _ := proxyproto.Of(near)
		h.Version, h.Source, h.Destination = version, near.RemoteAddr(), near.LocalAddr()
		return proxyproto.Client(h)
	}
}

// passage joins the two connections once the second is there.
type passage struct {
	act.Child
	near *listener.Conn
	dial *listener.Connect
}

func (p *passage) Act(t *act.Task) act.Directive {
	if p.Action == nil {
		p.Action = listener.Join(p.near, p.dial.Conn())
	}
	return p.Child.Act(t)
}
