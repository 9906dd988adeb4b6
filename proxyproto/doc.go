// Package proxyproto reads and sends the header of the PROXY protocol, versions 1 and 2. With it a proxy tells a server the
// address of its client: https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt. HAProxy, nginx, Envoy and the load
// balancers of clouds send it in front of the bytes of a connection.
//
// [Server] makes a filter for the connections of a service. Put it before the filter of TLS, whose bytes the proxy
// passes on:
//
//	v := &service.Listener{
//		Address: ":443",
//		Filters: []listener.Filter{
//			proxyproto.Server(proxyproto.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}}),
//			secure.Server(config, nil),
//		},
//		Handler: site.Serve,
//	}
//
// After it the addresses of the connection are the ones in the header. RemoteAddr of [listener.Conn] is the client's, and so is
// the address in requests, in the access log and in the log. Package inspect shows it too, except for a stall: its watchdog asks
// the kernel, which knows only the proxy. LocalAddr is the address that the client has connected to. [ProxyAddr] returns the
// address of the proxy, and [Of] all of the header.
//
// With package program a [Config] is an Option, whose flag is -proxy-from.
//
// [Client] makes a filter for connections that are dialled, which sends a header.
//
// A header is believed only if it comes from a trusted sender: see [Config]. Only the addresses of a connection change,
// so Conn.SendFile and Conn.Ended work as without the filter.
package proxyproto
