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

// resolver is the Resolver of a scheduler. It does not change once it is used.
type resolver struct {
	Resolver
	used bool
}

var resolvers = act.NewLocal(func(*act.Scheduler) *resolver { return &resolver{Resolver: net.DefaultResolver} })

// ResolverOf returns the resolver of s. The default is [net.DefaultResolver]. It is called on the thread of s.
func ResolverOf(s *act.Scheduler) Resolver {
	r := resolvers.Get(s)
	r.used = true
	return r.Resolver
}

// SetResolver gives s another resolver, such as one that asks certain servers, or knows the hosts of a test. A [NameCache]
// keeps the answers. Call it on the thread of s, in a set-up function: it panics after the first lookup.
func SetResolver(s *act.Scheduler, r Resolver) {
	x := resolvers.Get(s)
	if x.used {
		panic("monitor: SetResolver after the first lookup")
	}
	x.Resolver = r
}
