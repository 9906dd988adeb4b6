package admission

import (
	"cmp"
	"container/list"
	"encoding/binary"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/internal/facts"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Limiter limits the connections and messages of each source: an IPv4 address, or a network /64 of IPv6. It is used by pointer, for one service or for several of a Group
// together, and must not be changed once it is in use. The zero Limiter refuses nothing.
//
// A connection beyond a limit is aborted at once, and logged at debug level; package inspect counts them for the service, by
// reason. Connections of Unix sockets have no source.
type Limiter struct {
	// Conns is how many open connections a source may have on all schedulers together; 0 means no bound. A connection is open
	// until its action has ended: a connection that lingers after that does not count here, but in MaxConns.
	Conns int
	// Rate is how many new connections a source may make in a second; 0 means no bound. Burst is how many it may make at once
	// when it has made none for long; 0 means Rate. Refused connections do not count.
	Rate, Burst int
	// Messages is how many requests or messages a source may send in a second, on all of its connections together; 0 or less
	// means no bound. MessageBurst is how many it may send at once when it has sent none for long; 0 means Messages. The program
	// decides what counts: it calls Take or Pace for each.
	Messages, MessageBurst int
	// Remembered bounds how many sources without connections are remembered, until they have all of their bursts again. Beyond it
	// the source that has been without a connection for longest is forgotten. 0 means 65,536, about 12 MiB. Without Rate and
	// Messages none is remembered.
	Remembered int

	resting atomic.Int64 // sources without connections, in all shards
	shards  [shardCount]shard
}

// shardCount is how many parts the sources are in, so that schedulers seldom wait for each other. See shard of Limiter.
const shardCount = 64

type shard struct {
	mu      sync.Mutex // held for a look into a map and a list
	sources map[key]*source
	resting list.List // of *source: sources without connections. The first has had none, and sent no packet, for longest
}

// key is an IPv4-mapped address, or the first half of an IPv6 address.
type key [16]byte

// source is one that has connections, or has had some lately.
type source struct {
	key   key
	of    *Limiter
	conns int // open ones
	came  bucket
	sent  bucket
	place *list.Element // in resting, while it has no connections
}

// refusal is the error of a connection that is beyond a limit. It implements service's limited.
type refusal struct {
	text string
	fast bool
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) TooFast() bool { return e.fast }

// The failures of the filter.
var (
	errTooMany error = &refusal{"admission: the source has too many connections", false}
	errTooFast error = &refusal{"admission: the source makes connections too fast", true}
)

// Filter is a listener.Filter: put it into the Filters of a service, before TLS. Within the limits it counts the
// connection until its action has ended, and returns nil; beyond them it returns an action that aborts the
// connection.
func (l *Limiter) Filter(c *listener.Conn) act.Action {
	k, ok := keyOf(c.RemoteAddr())
	if !ok || !l.limits() {
		return nil
	}
	x, err := l.take(k, c.Scheduler().Now())
	if err == nil {
		if err = c.Wrap(func(below monitor.Stream) monitor.Stream { return &stream{below, x} }); err == nil {
			return nil
		}
		l.release(x)
	}
	return act.Func(func(t *act.Task) act.Directive {
		c.Abort()
		return t.Fail(&listener.PeerError{Err: err})
	})
}

// keyOf returns the source that an address belongs to.
func keyOf(a net.Addr) (k key, ok bool) {
	ip := facts.AddrPort(a).Addr()
	if !ip.IsValid() {
		return k, false
	}
	return keyOfIP(ip), true
}

func keyOfIP(ip netip.Addr) (k key) {
	k = ip.As16()
	if ip = ip.Unmap(); ip.Is6() {
		clear(k[8:])
	}
	return k
}

// shard returns the one of k. Clients that choose their addresses so that all are in one shard make schedulers wait for each other,
// for some nanoseconds.
func (l *Limiter) shard(k key) *shard {
	h := (binary.BigEndian.Uint64(k[:]) ^ binary.BigEndian.Uint64(k[8:])) * 0x9E3779B97F4A7C15
	return &l.shards[h>>58] // 6 bits: 64 shards
}

// take counts a connection of k, or says why it is refused.
func (l *Limiter) take(k key, now time.Duration) (*source, error) {
	s := l.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.forget(s, now)
	x := s.sources[k]
	switch {
	case x == nil:
		x = &source{key: k, of: l}
	case l.Conns > 0 && x.conns >= l.Conns:
		return nil, errTooMany
	}
	if l.Rate > 0 && x.came.take(now, l.Rate, l.Burst) > 0 {
		return nil, errTooFast // x is known: a new one has all of Burst
	}
	if x.conns++; x.conns == 1 {
		s.enter(x)
	}
	return x, nil
}

// limits reports whether there is a limit.
func (l *Limiter) limits() bool { return l.Conns > 0 || l.Rate > 0 || l.Messages > 0 }

// bucket is when a source has all of a burst again, on the clock of the schedulers. What it takes costs a part of a second, and
// up to a burst may be owed (the generic cell rate algorithm).
type bucket time.Duration

// take takes one of rate in a second, if that is not more than burst. Otherwise it returns how long it is until it may.
func (b *bucket) take(now time.Duration, rate, burst int) (wait time.Duration) {
	before := *b
	if wait = b.owe(now, rate, burst); wait > 0 {
		*b = before
	}
	return wait
}

// owe takes one in any case. It returns how long it is until take might have done so.
func (b *bucket) owe(now time.Duration, rate, burst int) (wait time.Duration) {
	each := time.Second / time.Duration(rate)
	*b = max(*b, bucket(now)) + bucket(each)
	most := time.Duration(cmp.Or(max(burst, 0), rate))
	if each > 0 {
		most = min(most, math.MaxInt64/each) // or each*most overflows
	}
	return max(0, time.Duration(*b)-now-each*most)
}

// enter keeps x, which has got its first connection.
func (s *shard) enter(x *source) {
	if x.place != nil {
		s.resting.Remove(x.place)
		x.place = nil
		x.of.resting.Add(-1)
		return
	}
	if s.sources == nil {
		s.sources = map[key]*source{}
	}
	s.sources[x.key] = x
}

// release is called when a connection of x is closed.
func (l *Limiter) release(x *source) {
	s := l.shard(x.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.conns--; x.conns > 0 {
		return
	}
	if l.Rate <= 0 && l.Messages <= 0 {
		delete(s.sources, x.key)
		return
	}
	l.remember(s, x)
}

// remember keeps x, which has no connection, as the last to be forgotten.
func (l *Limiter) remember(s *shard, x *source) {
	x.place = s.resting.PushBack(x)
	if l.resting.Add(1) > int64(cmp.Or(max(l.Remembered, 0), 1<<16)) {
		l.drop(s, s.resting.Front())
	}
}

// forget drops up to two sources that have all of their bursts again: each connection leaves at most one.
func (l *Limiter) forget(s *shard, now time.Duration) {
	for range 2 {
		first := s.resting.Front()
		if first == nil {
			return
		}
		if x := first.Value.(*source); time.Duration(max(x.came, x.sent)) > now {
			return
		}
		l.drop(s, first)
	}
}

func (l *Limiter) drop(s *shard, place *list.Element) {
	x := s.resting.Remove(place).(*source)
	x.place = nil
	delete(s.sources, x.key)
	l.resting.Add(-1)
}
