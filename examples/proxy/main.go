// Command proxy forwards connections to another address.
//
//	go run ./examples/echo &
//	go run ./examples/proxy -to 127.0.0.1:7007
//	nc 127.0.0.1 7009
package main

import (
	"flag"

	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/program"
)

func main() {
	to := "127.0.0.1:7007"
	flag.Func("to", "where connections are forwarded to: `host:port`, or unix: and a path (default "+to+")", func(text string) error {
		to = text
		return proxy.CheckAddress(text)
	})
	server := program.Server{Addr: "127.0.0.1:7009"}
	server.Parse()
	server.Run(server.Listen(server.Addr, proxy.To(to)))
}
