package sim

import (
	"fmt"
	"io"
	gonet "net"
	"net/netip"
	"syscall"
	"time"
)

// watcher is told when what can be done with an end may have changed.
type watcher interface{ ready() }

// holder is who uses an end: a descriptor, or a client.
type holder interface {
	actor
	watcher
}

// connection is two ends, and a pipe from each to the other. It behaves as Linux does, of which netpoll's
// documentation is the short form; the states are those of RFC 9293 as far as a call can tell them apart.
type connection struct {
	net   *internet
	id    uint64
	local bool // Unix sockets: no latency, no handshake
	ends  [2]end
	pipes [2]pipe // pipes[i] carries what ends[i] sends

	// Of the connect: how far it is, how often it was tried, and what will be answered if it fails.
	stage   stage
	tries   int
	verdict syscall.Errno
	port    *listening

	addr   [2]netip.AddrPort // of the ends
	path   string            // of a Unix listener
	broken bool              // there was a reset, so bytes may be lost
	cause  syscall.Errno     // what a fault has it end by; 0: a reset
	hurt   bool              // by a fault: the reset, or the refusal, is not the code's
	held   bool              // up by a fault, for seconds
	place  int               // in internet.connections
}

// end is one side of a connection.
type end struct {
	c      *connection
	side   int
	holder holder // nil: in a backlog
	in     *pipe
	out    *pipe
	phase  phase
	err    syscall.Errno // what SO_ERROR has
	closed bool          // by its holder; what is on its way goes on
	ended  bool          // the peer sends nothing more, and that has arrived
	mute   bool          // this end sends nothing more
}

type phase uint8

const (
	connecting phase = iota
	connected
	dead // reset, refused, or ended in both directions
)

// pipe is one direction: bytes that wait to be read, and before them in time what is on its way.
//
//	      read          arrived          sent
//	───────┼───── unread ──┼── on its way ──┼─── room ───▶ read+capacity
//
// read <= arrived <= sent <= read+capacity.
type pipe struct {
	c        *connection
	from, to *end
	ring     []byte // its length is a power of 2, and grows up to the capacity
	capacity int
	read     uint64
	arrived  uint64
	sent     uint64
	freed    uint64 // up to where what was read has made room

	flights  fifo[flight]
	pending  bool          // the next arrival is in the agenda
	last     time.Duration // nothing arrives before what was sent before
	clogged  time.Duration // nothing arrives before
	ended    bool          // the end has arrived
	reset    bool          // a reset is on its way, or has come
	lost     bool          // what is sent goes nowhere
	refused  bool          // a send was, or was cut short: its sender wants to know of room
	answered bool          // and that there is room is on its way to it
}

// flight is a segment on its way.
type flight struct {
	at   time.Duration
	upTo uint64
	end  bool
}

// fifo is a queue in a ring, the length of which is a power of 2.
type fifo[T any] struct {
	ring        []T
	first, next uint
}

func (q *fifo[T]) len() int     { return int(q.next - q.first) }
func (q *fifo[T]) at(i uint) *T { return &q.ring[i&uint(len(q.ring)-1)] }
func (q *fifo[T]) head() *T     { return q.at(q.first) }

func (q *fifo[T]) push(x T) {
	if q.len() == len(q.ring) {
		ring := make([]T, max(4, 2*len(q.ring)))
		for i := range q.len() {
			ring[i] = *q.at(q.first + uint(i))
		}
		q.ring, q.first, q.next = ring, 0, uint(q.len())
	}
	*q.at(q.next) = x
	q.next++
}

func (q *fifo[T]) pop() (x T) {
	place := q.head()
	x, *place = *place, x
	q.first++
	return x
}

// newConnection makes a connection that is not connected yet.
func (n *internet) newConnection(local bool) *connection {
	n.made++
	c := &connection{net: n, id: n.made, local: local, place: len(n.connections)}
	for i := range c.ends {
		c.ends[i] = end{c: c, side: i, in: &c.pipes[1-i], out: &c.pipes[i]}
		c.pipes[i] = pipe{c: c, from: &c.ends[i], to: &c.ends[1-i], capacity: n.drawCapacity()}
	}
	n.connections = append(n.connections, c)
	return c
}

const (
	leastCapacity = 1 << 10
	mostCapacity  = 256 << 10
)

// drawCapacity draws the magnitude first: small ones are as frequent as large ones.
func (n *internet) drawCapacity() int {
	d := &n.w.dice[network]
	least := leastCapacity << d.below(8)
	return d.between(least, 2*least)
}

func (e *end) peer() *end { return &e.c.ends[1-e.side] }

func (e *end) String() string {
	if e.holder == nil {
		return fmt.Sprintf("the backlog's end of connection %d", e.c.id)
	}
	if f, ok := e.holder.(*file); ok {
		return f.String()
	}
	return fmt.Sprintf("%v (connection %d)", e.holder, e.c.id)
}

func (e *end) number() uint64 { return numbersOfEnds | e.c.id<<1 | uint64(e.side) }

// What kinds of actors have a number of the net's begin it with a number of their own.
const (
	numbersOfEnds uint64 = (iota + 1) << 56
	numbersOfFiles
	numbersOfKernels
	numbersOfPorts
	numbersOfRunners
	numbersOfTasks
	numbersOfClients
)

// wake tells the holder that something has changed.
func (e *end) wake() {
	if e.holder != nil && !e.closed {
		e.holder.ready()
	}
}

// settled tells whether a connect is decided.
func (e *end) settled() bool { return e.phase != connecting }

// receive is System.Receive. Bytes that have arrived come before everything, also after a reset.
func (e *end) receive(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case e.closed:
		return 0, syscall.EBADF
	case e.unread() > 0:
		return e.in.take(p), nil
	case e.ended && !e.c.local: // SOCK_DONE: a reset behind the end is for who sends (tcp_recvmsg_locked)
		return 0, io.EOF
	case e.err != 0:
		return 0, e.takeError()
	case e.ended || e.phase == dead:
		return 0, io.EOF
	}
	return 0, syscall.EAGAIN
}

func (e *end) unread() int { return int(e.in.arrived - e.in.read) }

// send is System.Send.
func (e *end) send(head, p []byte) (int, error) {
	if len(head)+len(p) == 0 {
		return 0, nil
	}
	if err := e.sendable(); err != nil {
		return 0, err
	}
	room := e.out.room()
	n := min(room, len(head)+len(p))
	if n < len(head)+len(p) {
		e.out.refused = true
	}
	if n == 0 {
		return 0, syscall.EAGAIN
	}
	inHead := min(n, len(head))
	e.out.put(head[:inHead])
	e.out.put(p[:n-inHead])
	e.out.dispatch(n)
	return n, nil
}

// sendable says why nothing can be sent. A Unix socket looks at its own state before the pending error
// (unix_stream_sendmsg), a TCP socket after (sk_stream_error).
func (e *end) sendable() error {
	stopped := e.mute || e.phase == dead
	switch {
	case e.closed:
		return syscall.EBADF
	case e.c.local && stopped:
		return syscall.EPIPE
	case e.err != 0:
		return e.takeError()
	case stopped:
		return syscall.EPIPE
	case e.phase == connecting:
		return syscall.EAGAIN
	}
	return nil
}

// socketError is System.SocketError.
func (e *end) socketError() error {
	if e.err == 0 {
		return nil
	}
	return e.takeError()
}

func (e *end) takeError() error {
	err := e.err
	e.err = 0
	return err
}

// closeWrite is System.CloseWrite. The socket's own poller is told too, as Linux does (inet_shutdown).
func (e *end) closeWrite() (err error) {
	switch {
	case e.closed:
		return syscall.EBADF
	case e.c.local:
		e.mute = true
		e.peer().endArrives()
	case e.phase == dead:
		err = syscall.ENOTCONN
	case e.phase == connecting:
		e.fail(syscall.ECONNRESET)
	case !e.mute:
		e.mute = true
		e.out.sendEnd()
	}
	e.wake()
	return err
}

// close is System.Close: what was sent still arrives, unless something is unread, which makes a reset of it.
func (e *end) close() { e.giveUp(e.unread() > 0) }

// reset is System.Reset.
func (e *end) reset() {
	last := e.mute && e.ended && e.unread() == 0 // in CLOSING and LAST_ACK nothing is sent (tcp_disconnect)
	e.giveUp(!last)
}

func (e *end) giveUp(hard bool) {
	if e.closed {
		return
	}
	e.closed = true
	switch {
	case e.c.local:
		e.leave()
	case e.phase == dead:
	case e.phase == connecting:
		e.phase = dead // the handshake finds out
	case hard:
		e.breakOff()
	case !e.mute:
		e.mute = true
		e.out.sendEnd()
	}
	e.c.retire()
}

// leave closes a Unix socket: the peer can neither send nor wait for more, and is told by an error if
// something it has sent was not read (unix_release_sock).
func (e *end) leave() {
	other := e.peer()
	other.mute, other.phase = true, dead
	if e.unread() > 0 {
		other.err = syscall.ECONNRESET
		e.c.broken = true
	}
	e.phase = dead
	other.endArrives()
}

// breakOff ends the connection with a reset.
func (e *end) breakOff() {
	e.phase, e.c.broken = dead, true
	e.out.sendReset()
}

// fail ends the connection here, for a reason that the holder can ask for.
func (e *end) fail(err syscall.Errno) {
	e.phase, e.err = dead, err
	e.wake()
}

// endArrives: the peer sends nothing more. Over Unix sockets it may say so more than once.
func (e *end) endArrives() {
	e.ended = true
	e.c.net.w.note(endArrives, e, 0, 0)
	e.wake()
}

// resetArrives ends what is not over yet. The error depends on whether the peer had ended before (tcp_reset).
func (e *end) resetArrives() {
	if e.phase == dead {
		return
	}
	e.c.net.w.note(resetArrives, e, 0, 0)
	e.c.broken = true
	switch {
	case e.c.cause != 0 && e.c.cause != syscall.ECONNRESET:
		e.fail(e.c.cause)
	case e.ended && !e.mute:
		e.fail(syscall.EPIPE)
	default:
		e.fail(syscall.ECONNRESET)
	}
	e.c.retire()
}

// readable tells whether a receive would do better than EAGAIN.
func (e *end) readable() bool {
	return e.unread() > 0 || e.ended || e.err != 0 || e.phase == dead
}

// writable tells whether there is enough room to be told of: a third of the capacity over TCP
// (sk_stream_is_writeable), three quarters over Unix sockets (unix_writable). Sends may find less.
func (e *end) writable() bool {
	if e.c.local {
		return 4*e.out.used() <= e.out.capacity
	}
	return e.mute || e.phase == dead || 3*e.out.room() >= e.out.capacity
}

// localAddr and peerAddr are System's LocalAddr and PeerAddr.
func (e *end) localAddr() gonet.Addr { return e.address(e.side) }

func (e *end) peerAddr() gonet.Addr {
	if !e.c.local && e.phase != connected {
		return nil
	}
	return e.address(1 - e.side)
}

func (e *end) address(side int) gonet.Addr {
	switch {
	case !e.c.local:
		return gonet.TCPAddrFromAddrPort(e.c.addr[side])
	case side == 0:
		return &gonet.UnixAddr{Net: "unix"} // who connects has no name
	}
	return &gonet.UnixAddr{Name: e.c.path, Net: "unix"}
}

// used is what takes up room. On a Unix socket that is all of a piece until its last byte is read (sock_wfree).
func (p *pipe) used() int { return int(p.sent - p.freed) }
func (p *pipe) room() int { return p.capacity - p.used() }

// put copies b behind what was sent.
func (p *pipe) put(b []byte) {
	if need := int(p.sent-p.read) + len(b); need > len(p.ring) {
		p.grow(need)
	}
	at := int(p.sent) & (len(p.ring) - 1)
	if len(b) > 0 {
		copy(p.ring, b[copy(p.ring[at:], b):])
	}
	p.sent += uint64(len(b))
	p.c.net.w.history.content(b)
}

func (p *pipe) grow(need int) {
	size := max(512, len(p.ring))
	for size < need {
		size *= 2
	}
	ring := make([]byte, size)
	for at := p.read; at < p.sent; {
		from, to := int(at)&(len(p.ring)-1), int(at)&(size-1)
		n := copy(ring[to:], p.ring[from:min(len(p.ring), from+int(p.sent-at))])
		at += uint64(n)
	}
	p.ring = ring
}

// take copies to b what has arrived, and lets the sender know of the room, if it wants to know. A Unix socket
// tells its peer whenever a piece was received to its end (unix_write_space).
func (p *pipe) take(b []byte) int {
	n := min(len(b), int(p.arrived-p.read))
	at := int(p.read) & (len(p.ring) - 1)
	copied := copy(b[:n], p.ring[at:])
	copy(b[copied:n], p.ring)
	p.read += uint64(n)
	switch {
	case !p.c.local:
		p.freed = p.read
		p.answer()
	case p.consumed() && p.from.writable():
		p.from.wake()
	}
	return n
}

// mostPiece is what a Unix socket keeps in one piece, as far as half of the capacity allows (unix_stream_sendmsg).
const mostPiece = 32 << 10

// consumed tells whether a piece that was sent over a Unix socket has been received to its end.
func (p *pipe) consumed() (some bool) {
	for q := &p.flights; q.len() > 0 && q.head().upTo <= p.read; some = true {
		p.freed = q.pop().upTo
	}
	return some
}

// answer sends word of room to a sender that was refused. It goes the other way, so it is held up by what
// holds that up.
func (p *pipe) answer() {
	if !p.refused || p.answered || 3*p.room() < p.capacity {
		return
	}
	p.answered = true
	w, back := p.c.net.w, p.to.out
	w.agenda.add(max(w.now+w.net.latency(), back.clogged), (*answer)(p))
}

// answer is the arrival of that word.
type answer pipe

func (a *answer) fire() {
	p := (*pipe)(a)
	p.answered = false
	if 3*p.room() >= p.capacity { // the sender may have filled it without having been told
		p.refused = false
		p.from.wake()
	}
}

// dispatch sends the last n bytes on their way, most often in one segment.
func (p *pipe) dispatch(n int) {
	if p.c.local {
		piece := uint64(min(p.capacity/2, mostPiece))
		for at := p.sent - uint64(n); at < p.sent; {
			at = min(at+piece, p.sent)
			p.flights.push(flight{upTo: at}) // for consumed
		}
		p.arrive(p.sent)
		return
	}
	d := &p.c.net.w.dice[network]
	for at := p.sent - uint64(n); at < p.sent; {
		size := int(p.sent - at)
		if size > 1 && d.below(8) == 0 {
			size = 1 + d.below(size-1)
		}
		at += uint64(size)
		p.fly(at, size)
	}
}

// fly sends one segment of so many bytes on its way. A fault makes a reset, for both ends, of what begins
// somewhere inside of it.
func (p *pipe) fly(upTo uint64, size int) {
	if p.lost {
		return
	}
	w := p.c.net.w
	if w.fault(&w.faults.Reset, p.from) {
		p.lost, p.c.broken = true, true
		p.c.cause = [...]syscall.Errno{syscall.ECONNRESET, syscall.ECONNRESET, syscall.ETIMEDOUT, syscall.EHOSTUNREACH}[w.dice[faults].below(4)]
		p.c.injure()
		if kept := w.dice[faults].below(size); kept > 0 {
			p.launch(flight{at: p.due(), upTo: upTo - uint64(size-kept)})
		}
		p.resetAt(p.due())
		p.to.out.sendReset()
		return
	}
	p.launch(flight{at: p.due(), upTo: upTo})
}

// sendEnd sends the end behind everything that was sent.
func (p *pipe) sendEnd() {
	if !p.lost {
		p.launch(flight{at: p.due(), upTo: p.sent, end: true})
	}
}

func (p *pipe) launch(f flight) {
	p.flights.push(f)
	p.await()
}

// await has the next arrival in the agenda.
func (p *pipe) await() {
	if !p.pending && p.flights.len() > 0 {
		p.pending = true
		p.c.net.w.agenda.add(p.flights.head().at, p)
	}
}

// due draws when something sent now arrives: in order, and not through a clogged link.
func (p *pipe) due() time.Duration {
	w := p.c.net.w
	latency := w.net.latency()
	if w.fault(&w.faults.Slow, p.from) {
		latency = w.dice[faults].duration(latencyHigh, time.Second)
	}
	if w.fault(&w.faults.Clog, p.from) {
		p.c.held = true
		p.clogged = w.now + w.dice[faults].duration(time.Millisecond, 10*time.Second)
	}
	p.last = max(w.now+latency, p.last, p.clogged)
	return p.last
}

// sendReset sends a reset, which may overtake what is on its way.
func (p *pipe) sendReset() {
	w := p.c.net.w
	p.resetAt(max(w.now+w.net.latency(), p.clogged))
}

func (p *pipe) resetAt(at time.Duration) {
	if !p.reset {
		p.reset = true
		p.c.net.w.agenda.add(at, (*breaking)(p))
	}
}

// breaking is the arrival of a reset.
type breaking pipe

func (b *breaking) fire() {
	p := (*pipe)(b)
	p.land()
	p.to.resetArrives()
}

// fire is the arrival of the next segment.
func (p *pipe) fire() {
	p.pending = false
	p.land()
	p.await()
}

// land takes in what is due.
func (p *pipe) land() {
	q, now := &p.flights, p.c.net.w.now
	for q.len() > 0 && q.head().at <= now {
		f := q.pop()
		switch {
		case p.to.phase == dead: // nobody is there
		case f.end:
			p.landEnd()
		default:
			p.arrive(f.upTo)
		}
	}
}

// arrive: bytes up to there are there. If their receiver has closed, they are answered by a reset.
func (p *pipe) arrive(upTo uint64) {
	if p.to.closed {
		p.to.breakOff()
		p.c.retire()
		return
	}
	n := upTo - p.arrived
	p.arrived = upTo
	p.c.net.w.note(bytesArrive, p.to, int64(n), int64(p.arrived-p.read))
	p.to.wake()
}

// landEnd: the end of the bytes is there. When both have ended, all is over.
func (p *pipe) landEnd() {
	p.ended = true
	if p.to.out.ended {
		p.from.phase, p.to.phase = dead, dead
	}
	p.to.endArrives()
	p.c.retire()
}

// retire forgets a connection that nobody holds, when nothing more can happen to it.
func (c *connection) retire() {
	a, b := &c.ends[0], &c.ends[1]
	if c.place < 0 || !a.closed || !b.closed || a.phase != dead || b.phase != dead {
		return
	}
	n := c.net
	for i := range c.pipes {
		if p := &c.pipes[i]; !c.broken && p.arrived != p.sent {
			n.w.wrong("the network has lost something: of %d bytes %d arrived at %v", p.sent, p.arrived, p.to)
		}
	}
	last := len(n.connections) - 1
	n.connections[c.place] = n.connections[last]
	n.connections[c.place].place = c.place
	n.connections[last] = nil
	n.connections = n.connections[:last]
	c.place = -1
}
