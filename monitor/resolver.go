package monitor

import (
	"context"
	"net"
	"net/netip"

	"github.com/daimon-go/daimon/act"
)

// Resolver finds the addresses of hosts. A [net.Resolver] is one.
type Resolver interface {
	// LookupNetIP returns the addresses of host, the one to be preferred first. network is "ip", which means IPv4 and IPv6. It
	// may block: it is called off the thread, by several goroutines at a time. When ctx ends, nobody waits for it any more.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var resolvers = act.NewLocal(func(*act.Scheduler) Resolver { return net.DefaultResolver })

// ResolverOf returns the resolver of s. The default is [net.DefaultResolver].
func ResolverOf(s *act.Scheduler) Resolver { return resolvers.Get(s) }

// SetResolver gives s another resolver: one that asks certain servers, keeps answers, or knows the hosts of a test. It
// panics after the first lookup; a set-up function is the place for it.
func SetResolver(s *act.Scheduler, r Resolver) { resolvers.Put(s, r) }
