// Command daimon is an echo server of datagrams.
package main

import (
	"flag"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/netpoll"
	"github.com/daimon-go/daimon/program"
	"github.com/daimon-go/daimon/service"
)

func main() {
	peers := flag.Bool("peers", false, "a task for each peer")
	server := program.Server{Addr: "127.0.0.1:7007"}
	server.Parse()
	v := &service.PacketListener{Address: server.Addr, Handler: echo}
	if *peers {
		v.Handler, v.Peers = nil, service.Peers{Handler: converse}
	}
	server.Run(v)
}

func echo(c *listener.PacketConn, in []netpoll.Packet) {
	for i := range in {
		_ = c.Reply(&in[i], in[i].Data) // what is dropped is counted
	}
}

// converse echoes as a task of each peer.
func converse(p *listener.Peer) act.Action {
	return act.Func(func(t *act.Task) act.Directive {
		for {
			in, err := p.Receive()
			if err != nil {
				return listener.Next(t, err)
			}
			_ = p.Send(in.Data)
		}
	})
}
