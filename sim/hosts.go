package sim

import (
	"context"
	gonet "net"
	"net/netip"
	"time"
)

// Host gives a name its addresses, in the order in which a lookup of a Server returns them. Other names are not found.
func (w *World) Host(name string, addresses ...string) {
	var ips []netip.Addr
	for _, a := range addresses {
		ips = append(ips, netip.MustParseAddr(a))
	}
	w.net.hosts[name] = ips
}

// Delay makes each connect to an IP address take d longer. From 127 s on nothing answers: the connect fails then, with
// ETIMEDOUT. An address at which nothing listens refuses at once.
func (w *World) Delay(address string, d time.Duration) {
	w.net.delays[netip.MustParseAddr(address)] = d
}

// LookupNetIP implements monitor.Resolver. It is called by the executors of the servers.
func (n *internet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if ips, ok := n.hosts[host]; ok {
		return ips, nil
	}
	return nil, &gonet.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}
