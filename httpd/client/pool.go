package client

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/daimon-go/daimon/act"
	"github.com/daimon-go/daimon/httpd/internal/http1"
	"github.com/daimon-go/daimon/httpd/internal/http2"
	"github.com/daimon-go/daimon/listener"
	"github.com/daimon-go/daimon/secure"
)

// desk is what all Origins share on a scheduler.
type desk struct {
	s        *act.Scheduler
	pools    map[*Origin]*pool
	inOrder  []*pool // the same, so that a simulation can be repeated
	scratch  []byte  // for the head of a request
	readings []*reading
	parsers  []*http1.Parser
	frames   http2.Buffers // for http2Conn.out
	content  http2.Buffers // for the content of answers of HTTP/2
	keeper   keeper
	counts   counts
}

var desks = act.NewLocal(func(s *act.Scheduler) *desk {
	d := &desk{s: s, pools: map[*Origin]*pool{}}
	d.keeper.desk = d
	s.Attach(&d.keeper)
	return d
})

// Close ends the pools: the scheduler calls it when it is closed.
func (d *desk) Close() error {
	for _, p := range slices.Backward(d.inOrder) {
		for _, x := range p.idle {
			x.Conn.Abort()
			p.free()
		}
		p.idle = nil
		p.close()
	}
	return nil
}

// keepReadings bounds how many are kept for the next requests.
const keepReadings = 64

func (d *desk) reading() (r *reading) {
	if n := len(d.readings); n > 0 {
		r, d.readings = d.readings[n-1], d.readings[:n-1]
		return r
	}
	return &reading{}
}

func (d *desk) keepReading(r *reading) {
	if r.parser != nil {
		d.keepParser(r.parser)
	}
	if len(d.readings) < keepReadings {
		r.chunks.Reset()
		*r = reading{chunks: r.chunks}
		d.readings = append(d.readings, r)
	}
}

// parser returns one for a head of an answer.
func (d *desk) parser() (p *http1.Parser) {
	if n := len(d.parsers); n > 0 {
		p, d.parsers = d.parsers[n-1], d.parsers[:n-1]
	} else {
		p = &http1.Parser{}
	}
	p.Reset()
	p.Response = true
	return p
}

func (d *desk) keepParser(p *http1.Parser) {
	if len(d.parsers) < keepReadings {
		p.Text = nil
		d.parsers = append(d.parsers, p)
	}
}

// pool has the connections of an Origin on one scheduler, and the Calls that wait for one.
type pool struct {
	*desk
	o       *Origin
	idle    []*http1Conn // the latest last
	shared  []*http2Conn // that take further Calls, in the order in which they were made
	waiting []*Call      // in the order in which they came
	dials   int          // connections that are being made for whoever comes first
	http1   bool         // the server has chosen HTTP/1.1
	streams uint32       // that a connection of HTTP/2 had room for at last; 0: not known
	closed  bool

	bounds []*places   // that count its connections
	lacks  *places     // that had no place at the latest attempt
	wish   *places     // where p has asked for one
	offers atomic.Bool // there may be idle connections
	gifts  []gift      // under the mu of the Origin
}

// poolOf returns the pool of an Origin on a scheduler.
func poolOf(o *Origin, s *act.Scheduler) *pool {
	d := desks.Get(s)
	p := d.pools[o]
	if p == nil {
		p = &pool{desk: d, o: o}
		d.pools[o], d.inOrder = p, append(d.inOrder, p)
		o.join(p, most(o.MaxConns, standardConns, noBound))
		if o.Client != nil {
			o.Client.join(p, most(o.Client.MaxConns, noBound, noBound))
		}
		o.mu.Lock()
		p.closed = o.closed
		o.mu.Unlock()
	}
	return p
}

// take gives the Call an idle connection, or a place to make one, or has it wait.
func (p *pool) take(c *Call) error {
	if p.closed {
		return errClosed
	}
	if len(p.waiting) > 0 && p.waiting[0] != c { // those come first
		return p.queue(c)
	}
	p.lacks = nil
	if x := p.join(c); x != nil {
		p.unqueue(c)
		p.counts.reused++
		c.use(&stream{x: x})
		return nil
	}
	if p.dials > 0 && !c.alone() && p.multiplexes() { // few connections for many Calls
		return p.queue(c)
	}
	anew := c.fresh || c.Filter != nil
	if !anew {
		if x := p.unused(); x != nil {
			p.unqueue(c)
			p.counts.reused++
			c.use(x)
			return nil
		}
	}
	if p.begin() || anew && p.giveWay() {
		p.unqueue(c)
		p.counts.dialled++
		p.dialling(c, 1)
		c.dialTo()
		return nil
	}
	return p.queue(c)
}

// join returns a connection of HTTP/2 with room for the Call, or nil.
func (p *pool) join(c *Call) *http2Conn {
	for _, x := range p.shared {
		if x.room() && !c.alone() {
			return x
		}
	}
	return nil
}

// multiplexes reports whether a connection that is being made may be one of HTTP/2.
func (p *pool) multiplexes() bool {
	return p.o.Protocol == HTTP2 || p.o.Protocol == Auto && p.o.TLS != nil && !p.http1
}

// dialling counts a connection that is being made, or no longer is.
func (p *pool) dialling(c *Call, n int) {
	if !c.alone() {
		p.dials += n
	}
}

// unused returns an idle connection of HTTP/1 on which nothing has come, or nil.
func (p *pool) unused() *http1Conn {
	for n := len(p.idle); n > 0; n = len(p.idle) {
		x := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		if x.silent() {
			return x
		}
		p.drop(x) // it has ended, or sent what nobody has asked for
	}
	return nil
}

// giveWay closes the connection of HTTP/1 that has been idle for the longest time, and reports whether there was one. Its place is
// the caller's. Otherwise it has one of HTTP/2 end, which gives its place back itself.
func (p *pool) giveWay() bool {
	if len(p.idle) == 0 {
		if i := slices.IndexFunc(p.shared, (*http2Conn).idle); i >= 0 {
			p.shared[i].retire()
		}
		return false
	}
	p.end(p.idle[0])
	p.idle = slices.Delete(p.idle, 0, 1)
	return true
}

// free gives a place back: another Call may make a connection.
func (p *pool) free() {
	for _, b := range p.bounds {
		b.leave()
	}
	p.wakeFirst()
}

func (p *pool) wakeFirst() {
	if len(p.waiting) > 0 {
		p.waiting[0].waker.Wake()
	}
}

// queue has a Call wait.
func (p *pool) queue(c *Call) error {
	if !c.queued {
		if len(p.waiting) >= most(p.o.MaxWaiting, standardWaiting, 0) {
			p.counts.busy++
			return ErrBusy
		}
		p.waiting = append(p.waiting, c)
		c.queued = true
	}
	return (*blockedPlace)(c)
}

// unqueue takes a Call out, and lets the next one look.
func (p *pool) unqueue(c *Call) {
	if c.queued {
		c.queued = false
		i := slices.Index(p.waiting, c)
		p.waiting = slices.Delete(p.waiting, i, i+1)
		if p.wakeFirst(); len(p.waiting) == 0 {
			p.ask()
			p.share()
		}
	}
}

// blockedPlace is a Call as the error that it has to wait for a connection.
type blockedPlace Call

func (*blockedPlace) Error() string     { return "client: all connections are in use" }
func (b *blockedPlace) Arm(t *act.Task) { b.waker = t.Waker(); b.pool.ask() }

// connected begins a Call on a connection that it has made.
func (p *pool) connected(c *Call, conn *listener.Conn) error {
	p.dialling(c, -1)
	state, is := secure.State(conn)
	switch {
	case is && state.NegotiatedProtocol == "h2", !is && p.o.Protocol == HTTP2:
		c.use(&stream{x: newHTTP2(p, conn, c.Filter != nil || p.closed)})
	case p.o.Protocol == HTTP2:
		conn.Abort()
		p.free()
		return errNotHTTP2
	default:
		p.http1 = p.http1 || c.Upgrade == ""
		c.use(&http1Conn{Conn: conn, pool: p, private: c.Filter != nil})
	}
	p.wakeFirst() // others may share it, or need not wait for it
	return nil
}

var errNotHTTP2 = errors.New("the server does not speak HTTP/2")

// give takes back a connection that has carried a Call to its end.
func (p *pool) give(x *http1Conn) {
	if p.keep(x) {
		p.share()
		p.wakeFirst()
	}
}

// keep keeps an idle connection, or closes it.
func (p *pool) keep(x *http1Conn) bool {
	if p.closed || p.keeper.ordered || len(p.idle) >= most(p.o.MaxIdle, standardIdle, 0) && len(p.waiting) == 0 {
		p.drop(x)
		return false
	}
	now := p.s.Now()
	x.until = now + cmp.Or(p.o.IdleTimeout, standardKeep)
	p.idle = append(p.idle, x)
	p.keeper.note(now, x.until)
	return true
}

// drop closes an idle connection.
func (p *pool) drop(x *http1Conn) {
	p.end(x)
	p.free()
}

// end closes a connection, and keeps its place.
func (p *pool) end(x *http1Conn) { _ = x.Conn.Internals().CloseWithin(0) } // an error means that it has gone

// close is called when the Origin or the scheduler is closed.
func (p *pool) close() {
	p.closed = true
	for _, b := range p.bounds {
		b.part(p)
	}
	for _, g := range p.gifts { // nobody gives any more
		g.Close()
		p.free()
	}
	p.gifts = nil
	p.closeIdle()
	for _, x := range slices.Clone(p.shared) {
		x.retire()
	}
	for _, c := range p.waiting {
		c.waker.Wake()
	}
	delete(p.pools, p.o)
	p.inOrder = slices.DeleteFunc(p.inOrder, func(other *pool) bool { return other == p })
}

// closeIdle closes the connections without a request.
func (p *pool) closeIdle() {
	for _, x := range p.idle {
		p.drop(x)
	}
	p.idle = nil
	for _, x := range slices.Clone(p.shared) {
		if len(x.streams) == 0 {
			x.retire()
		}
	}
}
