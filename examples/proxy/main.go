// Command proxy forwards connections to another address.
//
//	go run ./examples/echo &
//	go run ./examples/proxy -to 127.0.0.1:7007
//	nc 127.0.0.1 7009
//
// It speaks TLS to its clients with -tls-self, or with -tls-cert and -tls-key, and to the other address with -tls-to.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"net"

	"github.com/daimon-go/daimon/examples/internal/withtls"
	"github.com/daimon-go/daimon/examples/proxy/proxy"
	"github.com/daimon-go/daimon/internal/cli"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

func main() {
	to := "127.0.0.1:7007"
	flag.Func("to", "where connections are forwarded to: `host:port`, or unix: and a path (default "+to+")", func(text string) error {
		to = text
		return proxy.CheckAddress(text)
	})
	encrypted := flag.Bool("tls-to", false, "speak TLS to the address of -to, whose certificate must be valid for the host")
	server := withtls.Parse("127.0.0.1:7009")
	var filters []listener.Filter
	if *encrypted {
		host, _, err := net.SplitHostPort(to)
		if err != nil || host == "unix" {
			cli.Exit("proxy", errors.New("-tls-to needs a -to with a host"), 2)
		}
		filters = append(filters, secure.Client(&tls.Config{ServerName: host}, nil))
	}
	server.Limits.Conns = 2 // one is dialled for each that is accepted
	server.Run(server.Listen(server.Addr, proxy.To(to, filters...)))
}
