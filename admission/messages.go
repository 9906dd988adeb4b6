package admission

import (
	"net/netip"
	"time"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/monitor"
)

// Take counts a message of the client of c, and returns 0. If its source has sent too many, Take counts nothing and returns
// how long it is until the source may send another: the program should refuse the message. [httpd.Limited] answers requests in
// this way. A connection that has not passed Filter has no limit. Take is called on the thread of c's scheduler.
//
// [httpd.Limited]: https://pkg.go.dev/github.com/daimon-go/daimon/httpd#Limited
func (l *Limiter) Take(c *listener.Conn) (wait time.Duration) {
	if wait = l.message(c, (*bucket).take); wait > 0 {
		countsOf.Get(c.Scheduler()).refused++
	}
	return wait
}

// Admit counts a packet of a source, and reports whether the source has not sent too many: otherwise the packet should be
// dropped. Packets count as Messages do. [service.PacketListener] has a field for it. A client can give any address as the source
// of its packets, unless the networks between refuse that: then other sources are forgotten early (see Remembered). Admit is
// called on the thread of s.
//
// [service.PacketListener]: https://pkg.go.dev/github.com/daimon-go/daimon/service#PacketListener
func (l *Limiter) Admit(s *act.Scheduler, from netip.Addr) bool {
	if l.Messages <= 0 {
		return true
	}
	k, now := keyOfIP(from), s.Now()
	in := l.shard(k)
	in.mu.Lock()
	defer in.mu.Unlock()
	l.forget(in, now)
	x := in.sources[k]
	switch {
	case x == nil:
		x = &source{key: k, of: l}
		in.enter(x)
		l.remember(in, x)
	case x.place != nil:
		in.resting.MoveToBack(x.place)
	}
	if x.sent.take(now, l.Messages, l.MessageBurst) > 0 {
		countsOf.Get(s).refused++
		return false
	}
	return true
}

// Pace counts a message of c's client, and never refuses it. It returns how long the caller must not read from c, to keep the
// source to its rate: 0 while less than the burst was sent. So backpressure slows the client down, and the protocol needs no
// answer for that. On each connection the source may send a message before it is held up. Pace is called on the thread of c's
// scheduler.
func (l *Limiter) Pace(c *listener.Conn) (pause time.Duration) {
	if pause = l.message(c, (*bucket).owe); pause > 0 {
		countsOf.Get(c.Scheduler()).paused++
	}
	return pause
}

func (l *Limiter) message(c *listener.Conn, count func(b *bucket, now time.Duration, rate, burst int) time.Duration) time.Duration {
	if l.Messages <= 0 {
		return 0
	}
	below, _ := listener.As[monitor.Stream](c)
	x := l.sourceOf(below)
	if x == nil {
		return 0
	}
	s := l.shard(x.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	return count(&x.sent, c.Scheduler().Now(), l.Messages, l.MessageBurst)
}

// sourceOf returns the source for which a connection over s counts; nil: for none.
func (l *Limiter) sourceOf(s monitor.Stream) *source {
	switch x := s.(type) {
	case *stream:
		if x.source.of == l {
			return x.source
		}
		return l.sourceOf(x.Stream)
	case interface{ Unwrap() monitor.Stream }:
		return l.sourceOf(x.Unwrap())
	case interface{ Below() monitor.Stream }: // TLS
		return l.sourceOf(x.Below())
	}
	return nil
}

// counts are of one scheduler.
type counts struct{ refused, paused uint64 }

var countsOf = act.NewLocal(func(*act.Scheduler) *counts { return &counts{} })

// Counts implements facts.Counter.
func (n *counts) Counts(add func(name string, n uint64)) {
	add("source_messages_refused_total", n.refused)
	add("source_pauses_total", n.paused)
}
