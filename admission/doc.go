// Package admission limits the clients of a service by source: how many connections each source may have at a time, and
// how many new connections, requests or messages in a second. A source is an IPv4 address, or a network /64 of IPv6, which
// is what one customer has.
//
// [Limiter.Filter] is a filter for the connections of a service. Put it after the filter for the header of a proxy, so that it
// counts clients and not proxies, and before TLS: a refused connection costs no handshake.
//
//	limits := &admission.Limiter{Conns: 100, Rate: 20}
//	v := &service.Listener{
//		Address: ":443",
//		Filters: []listener.Filter{limits.Filter, secure.Server(config, nil)},
//		Handler: site.Serve,
//	}
//
// The program counts requests and messages, since only it can recognize them. A server of HTTP has its handler limited,
// and answers 429:
//
//	limits := &admission.Limiter{Messages: 50, MessageBurst: 200}
//	web := &httpd.Server{Handler: httpd.Limited(limits.Take, site.Serve)}
//
// A server of datagrams has packets dropped before it sees them:
//
//	v := &service.PacketListener{Address: ":53", Handler: answer, Admit: limits.Admit}
//
// A server of another protocol stops reading for as long as [Limiter.Pace] says.
//
// With package program a Limiter is an Option, whose flags are -max-per-source, -rate-per-source and -messages-per-source.
//
// Clients that share an address, such as the customers of a provider that translates addresses, share its limits. So do all
// IPv4 clients that come through one prefix of NAT64, such as 64:ff9b::/96 (RFC 6052). A client that has a network larger
// than /64 is as many sources as it has of those: MaxConns of the service bounds all together.
package admission
