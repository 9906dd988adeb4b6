// Command proxy passes TCP connections on to another address.
//
//	go run ./examples/echo &
//	go run ./examples/proxy -to 127.0.0.1:7007
//	nc 127.0.0.1 7009
package main

import (
	"flag"

	"github.com/daimon-go/daimon/examples/internal/cli"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
)

func main() {
	to := cli.Peer("127.0.0.1:7007")
	flag.Var(&to, "to", "where connections are passed on to: `host:port`, or unix: and a path")
	cli.Main("proxy", "127.0.0.1:7009", func(f *cli.Flags) cli.Service {
		return f.Listen(proxy.To(string(to)))
	})
}
