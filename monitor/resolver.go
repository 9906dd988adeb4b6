package monitor

import (
	"context"
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
)

// Resolver looks up the addresses of hosts, for listener.Connect: see [SetResolver]. A [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP returns the addresses of host, the preferred one first. network is "ip", which means IPv4 and IPv6.
	// It may block: it is called on other goroutines, several at a time. When ctx ends, its result is no longer needed.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var resolvers = act.NewLocal(func(*act.Scheduler) Resolver { return net.DefaultResolver })

// ResolverOf returns the resolver of s. The default is [net.DefaultResolver]. It is called on the thread of s.
func ResolverOf(s *act.Scheduler) Resolver { return resolvers.Get(s) }

// SetResolver gives s another resolver, such as one that asks certain servers, caches answers, or knows the hosts of a
// test. Call it on the thread of s, in a set-up function: it panics after the first lookup.
func SetResolver(s *act.Scheduler, r Resolver) { resolvers.Put(s, r) }
