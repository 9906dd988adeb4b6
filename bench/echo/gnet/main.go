// Command gnet is an echo server on gnet, of streams or datagrams: -reactors event loops.
package main

import (
	"flag"
	"log"
	"runtime"

	"github.com/panjf2000/gnet/v2"
)

type echo struct{ gnet.BuiltinEventEngine }

func (*echo) OnTraffic(c gnet.Conn) gnet.Action {
	in, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	if _, err := c.Write(in); err != nil {
		return gnet.Close
	}
	return gnet.None
}

func main() {
	addr := flag.String("addr", "127.0.0.1:7007", "the address to listen on")
	network := flag.String("network", "tcp", "tcp or udp")
	reactors := flag.Int("reactors", 0, "event loops, and GOMAXPROCS; 0: one for each CPU")
	flag.Parse()
	runtime.GOMAXPROCS(*reactors)
	options := []gnet.Option{gnet.WithNumEventLoop(*reactors), gnet.WithMulticore(*reactors == 0), gnet.WithReuseAddr(true)}
	log.Fatal(gnet.Run(&echo{}, *network+"://"+*addr, options...))
}
