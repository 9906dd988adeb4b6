package client

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/listener"
)

// places are the connections that an Origin or a Client may have on all schedulers, and the pools that wait for one. A pool with Calls
// that wait is in wishes. The first one there is served by whoever can, on whatever scheduler:
//
//	a place becomes free        the first pool is woken, and only that may take it
//	a connection becomes idle   its pool hands it over, or closes it if the first pool is one of another Origin
//	neither                     pools with idle connections are woken, and do the same
//
// A pool that was served asks again if more of its Calls wait. A pool is in the wishes of one places at a time: one that waited in
// two could keep each of the first pools there from what the other is to have.
type places struct {
	most  int32
	taken atomic.Int32
	asked atomic.Int32 // len(wishes)

	mu     sync.Mutex
	pools  []*pool // of all schedulers
	wishes []*pool
}

// gift is an idle connection on its way to the pool of another scheduler. It has its places.
type gift interface {
	Adopt(s *act.Scheduler) (*listener.Conn, error)
	Close()
}

// join adds a pool.
func (b *places) join(p *pool, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most == 0 { // it does not change: others read it without a lock
		b.most = int32(most)
	}
	b.pools = append(b.pools, p)
	p.bounds = append(p.bounds, b)
}

// part removes a pool.
func (b *places) part(p *pool) {
	b.set(p, false)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools = slices.DeleteFunc(b.pools, func(other *pool) bool { return other == p })
}

// first returns the pool that is served next; nil if none waits.
func (b *places) first() *pool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.wishes) == 0 {
		return nil
	}
	return b.wishes[0]
}

// enter takes a place, if there is one that p may have.
func (b *places) enter(p *pool) bool {
	if b.asked.Load() > 0 {
		if r := b.first(); r != nil && r != p {
			return false
		}
	}
	for n := b.taken.Load(); n < b.most; n = b.taken.Load() {
		if b.taken.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (b *places) leave() {
	b.taken.Add(-1)
	b.tell()
}

// set says whether Calls of p wait. After its connection p begins at the end.
func (b *places) set(p *pool, waits bool) {
	b.mu.Lock()
	at := slices.Index(b.wishes, p)
	news := waits != (at >= 0)
	switch {
	case news && waits:
		b.wishes = append(b.wishes, p)
	case news:
		b.wishes = slices.Delete(b.wishes, at, at+1)
	}
	b.asked.Store(int32(len(b.wishes)))
	b.mu.Unlock()
	if news {
		b.tell()
	}
}

// tell wakes who can serve the first wish.
func (b *places) tell() {
	if b.asked.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.wishes) == 0:
	case b.taken.Load() < b.most:
		b.wishes[0].keeper.bell.Wake()
	default:
		for _, p := range b.pools {
			if p != b.wishes[0] && p.offers.Load() {
				p.keeper.bell.Wake()
			}
		}
	}
}

// begin takes a place for another connection, if there is one.
func (p *pool) begin() bool {
	for i, b := range p.bounds {
		if !b.enter(p) {
			for _, entered := range p.bounds[:i] {
				entered.leave()
			}
			p.lacks = b
			return false
		}
	}
	if p.wish != nil {
		p.wish.set(p, false)
	}
	return true
}

// ask has other pools know whether Calls wait.
func (p *pool) ask() {
	if p.wish != nil && p.wish != p.lacks {
		p.wish.set(p, false)
	}
	if p.wish = p.lacks; p.wish != nil {
		p.wish.set(p, len(p.waiting) > 0)
	}
}

// share is called when connections are idle. The pools that wait get them, or the places of connections that they cannot use. If
// Calls of its own wait, p gives one at most, and only if another pool is served before it.
func (p *pool) share() {
	p.offer()
	for _, b := range p.bounds {
		for b.asked.Load() > 0 && p.offers.Load() {
			r := b.first()
			switch {
			case r == p:
				b.set(p, false)
				return
			case r == nil, !(r.o == p.o && p.hand(b, r)) && !p.makeRoom(b), len(p.waiting) > 0:
				return
			}
		}
	}
}

// offer says whether connections are idle, before p looks for wishes: either it sees a new one, or it is woken.
func (p *pool) offer() {
	if idle := len(p.idle) > 0 || slices.ContainsFunc(p.shared, (*http2Conn).idle); p.offers.Load() != idle {
		p.offers.Store(idle)
	}
}

// makeRoom closes an idle connection, unless there is room already.
func (p *pool) makeRoom(b *places) bool {
	if b.taken.Load() < b.most || !p.giveWay() {
		return false
	}
	p.free()
	return true
}

// hand gives the latest idle connection to another pool of the Origin.
func (p *pool) hand(b *places, r *pool) bool {
	n := len(p.idle) - 1
	if n < 0 || r.s.Group() != p.s.Group() {
		return false
	}
	m, err := p.idle[n].Conn.Internals().Release()
	if err != nil {
		return false
	}
	p.idle[n] = nil
	p.idle = p.idle[:n]
	p.o.mu.Lock()
	here := slices.Contains(p.o.pools, r)
	if here {
		r.gifts = append(r.gifts, m)
	}
	p.o.mu.Unlock()
	if !here { // its scheduler has ended
		m.Close()
		p.free()
		return true
	}
	p.counts.handed++
	r.keeper.bell.Wake()
	b.set(r, false)
	return true
}

// attend is called in each turn of the keeper: the pool takes what it was given, and serves others.
func (p *pool) attend() {
	p.o.mu.Lock()
	gifts, ended := p.gifts, p.o.closed
	p.gifts = nil
	p.o.mu.Unlock()
	for _, g := range gifts {
		if c, err := g.Adopt(p.s); err != nil {
			p.free()
		} else {
			p.keep(&http1Conn{Conn: c, pool: p, used: true})
		}
	}
	if ended && !p.closed {
		p.close()
	}
	p.offer()
	if p.wakeFirst(); len(p.waiting) == 0 { // otherwise they are for the Calls that wait here
		p.share()
	}
}
