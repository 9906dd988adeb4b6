package proxyproto

import (
	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// Client returns a filter for connections that are dialled: see [listener.Connect]. It sends h, in front of all other bytes
// and of the handshake of TLS if that is a later filter. A proxy names its own client with it:
//
//	proxyproto.Client(proxyproto.Header{Version: 2, Source: near.RemoteAddr(), Destination: near.LocalAddr()})
//
// A Header without addresses says that the connection is the sender's own. Client panics where [Header.Append] does.
func Client(h Header) listener.Filter {
	header := h.Append(nil)
	return func(c *listener.Conn) act.Action {
		rest := header
		return act.Func(func(t *act.Task) act.Directive {
			n, err := c.Write(rest)
			if rest = rest[n:]; err != nil {
				return listener.Next(t, err)
			}
			return act.Done
		})
	}
}
