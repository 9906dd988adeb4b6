package sim

import (
	"fmt"
	"io"
	gonet "net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// holder uses an end: a descriptor, a stream or a client.
type holder interface {
	subject
	ready() // the readiness of the end may have changed
}

// connection is two ends, and a pipe from each to the other. It behaves like Linux; package netpoll has the short form.
// The states are the states of RFC 9293, as far as calls can tell them apart.
type connection struct {
	net   *internet
	id    uint64
	local bool // Unix sockets: no latency, no handshake
	ends  [2]end
	pipes [2]pipe // pipes[i] carries what ends[i] sends

	tries     int               // of the SYN
	port      *listening        // that has answered it
	addr      [2]netip.AddrPort // of the ends
	path      string            // of a Unix listener
	broken    bool              // there was a reset, so bytes may be lost
	cause     syscall.Errno     // the error by which a fault ends it; 0: a reset
	disrupted bool              // a fault has refused or reset it
	delayed   bool              // a fault has delayed bytes, for up to 10 s; some servers do not wait that long
	spared    bool              // a server may have closed it, so that another client gets its descriptor
}

// end is one side of a connection.
type end struct {
	c          *connection
	side       int
	holder     holder // nil: in a backlog
	in         *pipe
	out        *pipe
	phase      phase
	err        syscall.Errno // what SO_ERROR has
	closed     bool          // by its holder; what is on its way still arrives
	ended      bool          // the end of the peer's bytes has arrived
	writeEnded bool          // this end sends nothing more
}

type phase uint8

const (
	connecting phase = iota
	connected
	dead // reset, refused, or ended in both directions
)

// pipe is one direction of a connection: bytes that wait to be read, and bytes that are on their way.
//
//	      read          arrived          sent
//	───────┼───── unread ──┼── on its way ──┼─── room ───▶ read+capacity
//
// read <= arrived <= sent <= read+capacity.
type pipe struct {
	c        *connection
	from, to *end
	bytes    []byte // from read to sent
	capacity int
	read     uint64
	arrived  uint64
	sent     uint64
	freed    uint64 // up to where bytes that were read have made room

	segments fifo[segment]
	pending  bool          // the next arrival is on the agenda
	last     time.Duration // when the last segment arrives: nothing overtakes it
	clogged  time.Duration // nothing arrives before then
	ended    bool          // the end has arrived
	reset    bool          // a reset is on its way, or has arrived
	lost     bool          // what is sent is lost
	refused  bool          // a send found too little room, so its sender must be notified of room
	notified bool          // that notification is on its way
}

// segment is a segment on its way.
type segment struct {
	at   time.Duration
	upTo uint64
	end  bool
}

// fifo is a queue.
type fifo[T any] []T

func (q *fifo[T]) push(x T) { *q = append(*q, x) }

func (q *fifo[T]) pop() (x T) {
	x = (*q)[0]
	clear((*q)[:1])
	*q = (*q)[1:]
	return x
}

// newConnection makes a connection that is not connected yet.
func (n *internet) newConnection(local bool) *connection {
	n.made++
	c := &connection{net: n, id: n.made, local: local}
	for i := range c.ends {
		c.ends[i] = end{c: c, side: i, in: &c.pipes[1-i], out: &c.pipes[i]}
		c.pipes[i] = pipe{c: c, from: &c.ends[i], to: &c.ends[1-i], capacity: n.drawCapacity()}
	}
	n.connections = append(n.connections, c)
	return c
}

// drawCapacity draws from 1 to 256 KiB, the magnitude first: small ones are as frequent as large ones.
func (n *internet) drawCapacity() int {
	d := &n.w.dice[network]
	least := 1 << 10 << d.below(8)
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

// The upper byte of a subject's number is its kind.
const (
	numbersOfEnds uint64 = (iota + 1) << 56
	numbersOfFiles
	numbersOfKernels
	numbersOfPorts
	numbersOfRunners
	numbersOfTasks
	numbersOfClients
	numbersOfFunctions
)

// wake notifies the holder that something has changed.
func (e *end) wake() {
	if e.holder != nil && !e.closed {
		e.holder.ready()
	}
}

// settled reports whether the connect has succeeded or failed.
func (e *end) settled() bool { return e.phase != connecting }

// receive is System.Receive. Bytes that have arrived come first, even after a reset.
func (e *end) receive(p []byte) (int, error) {
	switch {
	case len(p) == 0:
		return 0, nil
	case e.closed:
		return 0, syscall.EBADF
	case e.unread() > 0:
		return e.in.take(p), nil
	case e.ended && !e.c.local: // SOCK_DONE: only sends see a reset after the end (tcp_recvmsg_locked)
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

// sendable returns the error if nothing can be sent. A Unix socket checks its own state before the pending error
// (unix_stream_sendmsg), a TCP socket after (sk_stream_error).
func (e *end) sendable() error {
	stopped := e.writeEnded || e.phase == dead
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

// takeError is System.SocketError.
func (e *end) takeError() error {
	if e.err == 0 {
		return nil
	}
	err := e.err
	e.err = 0
	return err
}

// closeWrite is System.CloseWrite. As in Linux, the socket's own poller is notified, too (inet_shutdown).
func (e *end) closeWrite() (err error) {
	switch {
	case e.closed:
		return syscall.EBADF
	case e.c.local:
		e.writeEnded = true
		e.peer().endArrives()
	case e.phase == dead:
		err = syscall.ENOTCONN
	case e.phase == connecting:
		e.fail(syscall.ECONNRESET)
	case !e.writeEnded:
		e.writeEnded = true
		e.out.sendEnd()
	}
	e.wake()
	return err
}

// close is System.Close. Bytes that were sent still arrive. If bytes are unread, the connection is reset instead.
func (e *end) close() { e.giveUp(e.unread() > 0) }

// reset is System.Reset.
func (e *end) reset() {
	last := e.writeEnded && e.ended && e.unread() == 0 // in CLOSING and LAST_ACK nothing is sent (tcp_disconnect)
	e.giveUp(!last)
}

func (e *end) giveUp(hard bool) {
	if e.closed {
		return
	}
	e.closed = true
	switch {
	case e.c.local:
		e.closeUnix()
	case e.phase == dead:
	case e.phase == connecting:
		e.phase = dead // the handshake checks that
	case hard:
		e.breakOff()
	case !e.writeEnded:
		e.writeEnded = true
		e.out.sendEnd()
	}
	e.c.retire()
}

// closeUnix closes a Unix socket. The peer can neither send nor wait for more, and gets an error if bytes that it has sent
// were not read (unix_release_sock).
func (e *end) closeUnix() {
	other := e.peer()
	other.writeEnded, other.phase = true, dead
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

// fail ends the connection at this end, with a pending error.
func (e *end) fail(err syscall.Errno) {
	e.phase, e.err = dead, err
	e.wake()
}

// endArrives is called when the end of the peer's bytes arrives. Over Unix sockets that may happen more than once.
func (e *end) endArrives() {
	e.ended = true
	e.c.net.w.note(endArrives, e, 0, 0)
	e.wake()
}

// resetArrives is called when a reset arrives. The error depends on whether the peer had closed its write side (tcp_reset).
func (e *end) resetArrives() {
	if e.phase == dead {
		return
	}
	e.c.net.w.note(resetArrives, e, 0, 0)
	e.c.broken = true
	switch {
	case e.c.cause != 0 && e.c.cause != syscall.ECONNRESET:
		e.fail(e.c.cause)
	case e.ended && !e.writeEnded:
		e.fail(syscall.EPIPE)
	default:
		e.fail(syscall.ECONNRESET)
	}
	e.c.retire()
}

// readable reports whether a receive would return something other than EAGAIN.
func (e *end) readable() bool {
	return e.unread() > 0 || e.ended || e.err != 0 || e.phase == dead
}

// writable reports whether there is enough room for an event: a third of the capacity over TCP
// (sk_stream_is_writeable), three quarters over Unix sockets (unix_writable). A send needs less.
func (e *end) writable() bool {
	if e.c.local {
		return 4*e.out.used() <= e.out.capacity
	}
	return e.writeEnded || e.phase == dead || 3*e.out.room() >= e.out.capacity
}

// localAddr and peerAddr are System's LocalAddr and PeerAddr.
func (e *end) localAddr() gonet.Addr { return e.address(e.side) }

func (e *end) peerAddr() gonet.Addr { return e.address(1 - e.side) }

func (e *end) address(side int) gonet.Addr {
	switch {
	case !e.c.local:
		return gonet.TCPAddrFromAddrPort(e.c.addr[side])
	case side == 0:
		return &gonet.UnixAddr{Net: "unix"} // the dialling end has no name
	}
	return &gonet.UnixAddr{Name: e.c.path, Net: "unix"}
}

// used returns the bytes that take up room. On a Unix socket a piece does so until its last byte is read (sock_wfree).
func (p *pipe) used() int { return int(p.sent - p.freed) }
func (p *pipe) room() int { return p.capacity - p.used() }

// put appends b to the bytes that were sent.
func (p *pipe) put(b []byte) {
	p.bytes = append(p.bytes, b...)
	p.sent += uint64(len(b))
	p.c.net.w.history.content(b)
}

// take copies bytes that have arrived to b, and notifies a sender that needs room. A Unix socket notifies its peer
// whenever a whole piece was received (unix_write_space).
func (p *pipe) take(b []byte) int {
	n := copy(b, p.bytes[:p.arrived-p.read])
	p.bytes = p.bytes[n:]
	p.read += uint64(n)
	switch {
	case !p.c.local:
		p.freed = p.read
		p.notifyOfRoom()
	case p.consumed() && p.from.writable():
		p.from.wake()
	}
	return n
}

// mostPiece bounds a piece of a Unix socket, together with half of the capacity (unix_stream_sendmsg).
const mostPiece = 32 << 10

// consumed reports whether a piece that was sent over a Unix socket has been received whole.
func (p *pipe) consumed() (some bool) {
	for ; len(p.segments) > 0 && p.segments[0].upTo <= p.read; some = true {
		p.freed = p.segments.pop().upTo
	}
	return some
}

// notifyOfRoom notifies a sender of room. The notification travels the other way, so a clogged link there delays it.
func (p *pipe) notifyOfRoom() {
	if !p.refused || p.notified || 3*p.room() < p.capacity {
		return
	}
	p.notified = true
	w, back := p.c.net.w, p.to.out
	w.agenda.add(max(w.now+w.net.latency(), back.clogged), todo(func() {
		p.notified = false
		if 3*p.room() >= p.capacity { // the sender may have filled it meanwhile
			p.refused = false
			p.from.wake()
		}
	}))
}

// dispatch sends the last n bytes, most often in one segment.
func (p *pipe) dispatch(n int) {
	if p.c.local {
		piece := uint64(min(p.capacity/2, mostPiece))
		for at := p.sent - uint64(n); at < p.sent; {
			at = min(at+piece, p.sent)
			p.segments.push(segment{upTo: at}) // for consumed
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
		p.sendSegment(at, size)
	}
}

// sendSegment sends a segment of so many bytes. A fault cuts it off at some byte, and resets both ends.
func (p *pipe) sendSegment(upTo uint64, size int) {
	if p.lost {
		return
	}
	w := p.c.net.w
	if w.fault(resetLink, p.from) {
		p.lost, p.c.broken = true, true
		p.c.cause = [...]syscall.Errno{syscall.ECONNRESET, syscall.ECONNRESET, syscall.ETIMEDOUT, syscall.EHOSTUNREACH}[w.dice[faults].below(4)]
		p.c.disrupt()
		if kept := w.dice[faults].below(size); kept > 0 {
			p.enqueue(segment{at: p.due(), upTo: upTo - uint64(size-kept)})
		}
		p.resetAt(p.due())
		p.to.out.sendReset()
		return
	}
	p.enqueue(segment{at: p.due(), upTo: upTo})
}

// sendEnd sends the end of the bytes.
func (p *pipe) sendEnd() {
	if !p.lost {
		p.enqueue(segment{at: p.due(), upTo: p.sent, end: true})
	}
}

func (p *pipe) enqueue(f segment) {
	p.segments.push(f)
	p.await()
}

// await puts the next arrival on the agenda.
func (p *pipe) await() {
	if !p.pending && len(p.segments) > 0 {
		p.pending = true
		p.c.net.w.agenda.add(p.segments[0].at, p)
	}
}

// due draws when something that is sent now arrives: not before what was sent earlier, and not while the link is clogged.
func (p *pipe) due() time.Duration {
	w := p.c.net.w
	latency := w.net.latency()
	if w.fault(slowSegment, p.from) {
		latency = w.lasts(latencyHigh, time.Second)
	}
	if w.fault(cloggedLink, p.from) {
		p.c.delayed = true
		p.clogged = w.now + w.lasts(time.Millisecond, 10*time.Second)
	}
	p.last = max(w.now+latency, p.last, p.clogged)
	return p.last
}

// sendReset sends a reset, which may overtake bytes.
func (p *pipe) sendReset() {
	w := p.c.net.w
	p.resetAt(max(w.now+w.net.latency(), p.clogged))
}

func (p *pipe) resetAt(at time.Duration) {
	if !p.reset {
		p.reset = true
		p.c.net.w.agenda.add(at, todo(func() {
			p.deliver()
			p.to.resetArrives()
		}))
	}
}

// fire is the arrival of the next segment.
func (p *pipe) fire() {
	p.pending = false
	p.deliver()
	p.await()
}

// deliver delivers segments that are due.
func (p *pipe) deliver() {
	for now := p.c.net.w.now; len(p.segments) > 0 && p.segments[0].at <= now; {
		f := p.segments.pop()
		switch {
		case p.to.phase == dead: // it is lost
		case f.end: // when both ends have arrived, the connection is over
			if p.ended = true; p.to.out.ended {
				p.from.phase, p.to.phase = dead, dead
			}
			p.to.endArrives()
			p.c.retire()
		default:
			p.arrive(f.upTo)
		}
	}
}

// arrive delivers the bytes up to upTo. If their receiver is closed, it answers with a reset.
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

// retire removes a connection that is closed at both ends, when nothing more can happen to it.
func (c *connection) retire() {
	a, b := &c.ends[0], &c.ends[1]
	if !a.closed || !b.closed || a.phase != dead || b.phase != dead {
		return
	}
	n := c.net
	at := slices.Index(n.connections, c)
	if at < 0 {
		return // already
	}
	n.connections = slices.Delete(n.connections, at, at+1)
	for i := range c.pipes {
		if p := &c.pipes[i]; !c.broken && p.arrived != p.sent {
			n.w.Errorf("the network has lost bytes: %d of %d arrived at %v", p.arrived, p.sent, p.to)
		}
	}
}
