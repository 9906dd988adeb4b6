package monitor

import (
	"cmp"
	"context"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/daimon-go/daimon/act"
)

// NameCache keeps the answers of a [Resolver], for all schedulers of a Group. Pass its Setup before the set-up functions
// that dial, and after one that calls [SetResolver]:
//
//	names := &monitor.NameCache{}
//	err := act.Run(ctx, act.Config{}, names.Setup, server.Setup)
//
// Calls for one name at the same time share one lookup. If the ctx of the call that has begun it ends, another call begins
// it again. A failure is kept for a second. The zero NameCache is ready to use. Do not change or copy it after Setup.
type NameCache struct {
	// Keep is how long addresses are kept: resolvers of Go do not say how long an answer is good. 0 means 30 s; with less
	// than 0 nothing is kept.
	Keep time.Duration
	// Most bounds the names that are kept; the one that came first goes. 0 means 1000.
	Most int

	mu    sync.Mutex
	below Resolver
	clock act.Clock
	known map[string]*answer // by network and host
	names []string           // of known, as they came
}

// keepFailure is how long it is known that a lookup has failed.
const keepFailure = time.Second

// answer is one lookup. ips, err and lost are written before done is closed, and read after that.
type answer struct {
	done  chan struct{}
	until time.Duration // it is good; math.MaxInt64 while it is under way
	ips   []netip.Addr
	err   error
	lost  bool // the caller that has begun it did not wait for it
}

// Setup makes n the Resolver of s. What n does not know it asks the Resolver that the first scheduler has had.
func (n *NameCache) Setup(s *act.Scheduler) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := resolvers.Get(s).Resolver
	if r == n { // an earlier Run has called it
		return nil
	}
	if n.known == nil {
		n.below, n.clock, n.known = r, s.Clock(), map[string]*answer{}
	}
	SetResolver(s, n)
	return nil
}

// LookupNetIP implements [Resolver], after Setup. Any goroutine may call it. It waits for another call that asks for the
// same.
func (n *NameCache) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	for ctx.Err() == nil {
		a, mine := n.find(network + " " + strings.ToLower(host))
		if mine {
			n.ask(ctx, a, network, host)
		}
		select {
		case <-a.done:
			if !a.lost {
				return slices.Clone(a.ips), a.err
			}
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// find returns the answer for a name, or one that the caller has to ask for.
func (n *NameCache) find(name string) (a *answer, mine bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a = n.known[name]
	if a != nil && n.clock.Monotonic() < a.until {
		return a, false
	}
	if a == nil {
		if len(n.names) >= max(1, cmp.Or(n.Most, 1000)) {
			delete(n.known, n.names[0]) // callers that wait for it have it
			n.names = n.names[1:]
		}
		n.names = append(n.names, name)
	}
	a = &answer{done: make(chan struct{}), until: math.MaxInt64, lost: true}
	n.known[name] = a
	return a, true
}

// ask looks a name up. The answer is lost if ctx ends, or if the Resolver panics.
func (n *NameCache) ask(ctx context.Context, a *answer, network, host string) {
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		keep := cmp.Or(n.Keep, 30*time.Second)
		if a.err != nil {
			keep = min(keep, keepFailure)
		}
		if a.until = n.clock.Monotonic() + keep; a.lost {
			a.until = 0
		}
		close(a.done)
	}()
	a.ips, a.err = n.below.LookupNetIP(ctx, network, host)
	a.lost = ctx.Err() != nil
}
