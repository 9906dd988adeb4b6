package proxyproto_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/proxyproto"
	"github.com/daimon-go/daimon/service"
)

// A server behind a proxy, and what the proxy sends.
func ExampleServer() {
	greet := func(c *listener.Conn) act.Action {
		proxy, _, _ := net.SplitHostPort(proxyproto.ProxyAddr(c).String())
		fmt.Fprintf(c, "welcome, %v, by way of %s\n", c.RemoteAddr(), proxy)
		return nil // the connection is closed
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	server := &service.Listener{
		Address: "127.0.0.1:0",
		Filters: []listener.Filter{proxyproto.Server(proxyproto.Config{Trusted: trusted})},
		Handler: greet,
	}
	ctx, cancel := context.WithCancel(context.Background())
	visit := func() {
		defer cancel()
		c, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = c.Close() }()
		fmt.Fprint(c, "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n")
		said, _ := io.ReadAll(c)
		fmt.Printf("%s", said)
	}
	err := act.Run(ctx, act.Config{Schedulers: 1}, server.Setup, func(s *act.Scheduler) error {
		go visit()
		return nil
	})
	fmt.Println(err)
	// Output:
	// welcome, 192.0.2.7:4711, by way of 127.0.0.1
	// <nil>
}

// A header of version 2, as bytes.
func ExampleHeader_Append() {
	h := proxyproto.Header{
		Version:     2,
		Source:      net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.7:4711")),
		Destination: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:443")),
	}
	fmt.Printf("%q\n", h.Append(nil))
	// Output:
	// "\r\n\r\n\x00\r\nQUIT\n!\x11\x00\f\xc0\x00\x02\a\xc0\x00\x02\x01\x12g\x01\xbb"
}
