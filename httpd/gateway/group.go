package gateway

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/httpd"
	"github.com/daimon-go/daimon/httpd/internal/syntax"
	"github.com/daimon-go/daimon/internal/facts"
)

// group is a Group that is used.
type group struct {
	name      string
	backends  []*backend
	policy    Policy
	kind, key string // of Group.Key: what is hashed, and its name
	failures  []int
	maxOut    int
	turn      *atomic.Int64 // the place of the latest choice
	budget    budget
}

var standardFailures = []int{502, 503, 504}

func newGroup(c *Group) *group {
	g := &group{name: c.Name, policy: c.Policy, failures: c.Failures, maxOut: cmp.Or(c.MaxOut, 50), turn: &atomic.Int64{}}
	if g.failures == nil {
		g.failures = standardFailures
	}
	g.kind, g.key, _ = strings.Cut(c.Key, ":")
	g.budget.share = max(0, cmp.Or(c.Retries, 20))
	if c.Retries >= 0 {
		g.budget.floor = leastRetries
	}
	for _, b := range c.Backends {
		g.backends = append(g.backends, newBackend(c.Name, b, c.Health))
	}
	return g
}

// failure reports whether another back end may do better than one that has answered with this status.
func (g *group) failure(status int) bool { return slices.Contains(g.failures, status) }

// pick returns the back end for a request, not one that was tried; nil if there is none.
func (g *group) pick(r *httpd.Request, tried []*backend) *backend {
	now := r.Scheduler().Now()
	if len(tried) == 0 {
		g.budget.asked(now)
	}
	key, is := g.keyOf(r)
	return g.choose(now, key, is, tried)
}

// stride is how far a choice moves a back end of weight 1 in the order of turns. A back end of weight 2 moves half as far.
const stride = 1 << 20

// choose returns the best back end. In the order of turns each back end has a place, and the one with the first place is next. A
// place is less than the present turn by half a step at most, so a back end that was left out for a while does not get what it
// has missed.
func (g *group) choose(now time.Duration, key uint64, keyed bool, tried []*backend) *backend {
	if len(g.backends) == 1 && len(tried) == 0 {
		return g.backends[0]
	}
	out := 0
	for _, b := range g.backends {
		if b.state.out(now) {
			out++
		}
	}
	all := out*100 > g.maxOut*len(g.backends)
	for {
		var best *backend
		var was, place, step int64
		least, first := math.Inf(1), int64(math.MaxInt64)
		turn := g.turn.Load()
		for _, b := range g.backends {
			if !all && b.state.out(now) || slices.Contains(tried, b) {
				continue
			}
			weight := float64(b.Weight) * b.state.share(now, b.Health.Return)
			stored, width := b.place.Load(), int64(stride/weight)
			begin := max(stored, turn-width/2)
			cost, middle := g.cost(b, weight, key, keyed), begin+width/2
			if cost < least || cost == least && middle < first {
				best, was, place, step, least, first = b, stored, begin, width, cost, middle
			}
		}
		switch {
		case best == nil:
			return nil
		case best.place.CompareAndSwap(was, place+step):
			g.turn.Store(max(place, turn)) // another scheduler may have stored a later one: that costs nobody more than a turn
			return best
		}
	}
}

// cost is what decides before the order of turns.
func (g *group) cost(b *backend, weight float64, key uint64, keyed bool) float64 {
	switch {
	case g.policy == LeastRequests:
		return float64(b.active.Load()+1) / weight
	case keyed: // rendezvous hashing: by the key each back end draws a number, which is exponentially distributed
		return -math.Log((float64(mix(key^b.hash)>>11)+0.5)/(1<<53)) / weight
	}
	return 0
}

// keyOf returns the hash of what Group.Key names, and whether the request has it.
func (g *group) keyOf(r *httpd.Request) (key uint64, is bool) {
	var value []byte
	switch g.kind {
	case "":
		return 0, false
	case "source":
		var memory [64]byte
		if from := facts.AddrPort(r.RemoteAddr()).Addr(); from.IsValid() {
			return hashOf(from.AppendTo(memory[:0])), true
		}
	case "path":
		value = r.Path()
	case "header":
		value = r.Header(g.key)
	case "cookie":
		for line := range r.Values("cookie") {
			if value == nil {
				value = cookie(line, g.key)
			}
		}
	}
	return hashOf(value), value != nil
}

// cookie returns the value of a cookie in a line of them (RFC 6265 4.2.1), or nil.
func cookie(line []byte, name string) []byte {
	for pair := range bytes.SplitSeq(line, []byte{';'}) {
		key, value, is := bytes.Cut(bytes.Trim(pair, syntax.Blank), []byte{'='})
		if is && string(key) == name {
			return value
		}
	}
	return nil
}

// hashOf is FNV-1a. It is the same in all processes, so that several gateways agree.
func hashOf(text []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, b := range text {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return mix(h)
}

// mix spreads the bits of x, as the last step of SplitMix64 does.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
